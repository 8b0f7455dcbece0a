import { isDeepStrictEqual } from 'node:util'
import { findInDirectory, findInTarget } from '#adapters/workflow-tasks/shared/find-workflow-user.ts'
import { defineTask } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { attributeReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { flag, list, parsed, text } from '#sdk/module/parameter-types.ts'
import { onDirectory, onTarget } from '#sdk/workflow/preview.ts'
import { type CustomTaskPlaces, defineCustomTask, next, type WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { noteVersion, setGroups, takeLoadedGroups } from '#sdk/workflow/workflow-user.ts'

/** Tasks that read the workflow's user again, from the directory or from a target. */

const nameInDirectory = text({ about: 'The attribute of the directory with the login.', required: true })

const nameInTarget = text({
  about: 'The attribute whose first value is the name in the target; the login if the user has none.',
  required: true,
})

/** The flow of a task that finds the user in a target by this attribute. */
function targetNameFlow(nameAttr: string, { pathOf }: CustomTaskPlaces) {
  const reads = attributeReads(nameAttr, pathOf('nameAttr'))
  return { ...noFlow, reads, loginReads: reads.map(({ attribute }) => attribute) }
}

export const loadAttributes = defineCustomTask({
  className: 'tasks.LoadAttributes',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadAttributes'],
  parameters: {
    name: list({ about: 'The attributes to load; may be repeated.', required: true }),
    nameAttr: nameInDirectory,
    base: parsed('distinguished name', (value) => Dn.parse(value), {
      about: 'Where the search begins; the whole directory when absent.',
    }),
  },
  prepare: ({ name: names, nameAttr, base = new Dn([]) }, { pathOf }) => ({
    flow: { ...noFlow, produces: names.map((attribute, i) => ({ attribute, path: pathOf('name', i) })) },
    create: ({ directory }) =>
      onDirectory(directory, async (people, { user, log }) => {
        const entry = await findInDirectory(people, base, nameAttr, user, 'LoadAttributes')
        if (entry === undefined) log.warn('user is not in the directory', { userID: user.userID })
        copyAttributes(entry?.attributes, names, user)
        return next
      }),
  }),
})

export const loadAttributesFromTarget = defineCustomTask({
  className: 'tasks.LoadAttributesFromTarget',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadAttributesFromTarget'],
  parameters: {
    target: text({ about: 'The target the attributes are loaded from.', required: true, reference: 'target' }),
    nameAttr: nameInTarget,
    name: list({ about: 'The attributes to load; may be repeated.' }),
    attributes: list({ about: 'The same as `name`, as OpenUnison spells it here.' }),
  },
  prepare: ({ target: targetName, nameAttr, ...given }, places) => {
    const { issues, pathOf } = places
    const produces = (['name', 'attributes'] as const).flatMap((parameter) =>
      given[parameter].map((attribute, i) => ({ attribute, path: pathOf(parameter, i) })),
    )
    if (produces.length === 0) issues.error(pathOf('name'), 'parameter "name" is required')
    const names = produces.map(({ attribute }) => attribute)
    return {
      flow: { ...targetNameFlow(nameAttr, places), produces },
      create: ({ targets }) =>
        onTarget(targetName, targets.get(targetName), async (target, { user, log, forTarget }) => {
          const found = await findInTarget(target, user, nameAttr, names, forTarget(targetName))
          noteVersion(user, targetName, found)
          if (found === undefined) log.warn('user is not in the target', { userID: user.userID, target: targetName })
          copyAttributes(found?.attributes, names, user)
          return next
        }),
    }
  },
})

/** Attributes without a value stay as they are. */
function copyAttributes(found: Attributes | undefined, names: readonly string[], user: WorkflowUser): void {
  for (const name of names) {
    const values = found?.values(name) ?? []
    if (values.length > 0) user.attributes.set(name, values)
  }
}

export const loadGroups = defineCustomTask({
  className: 'tasks.LoadGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadGroups'],
  parameters: {
    nameAttr: nameInDirectory,
    inverse: flag({ about: '`true` keeps only the groups of the directory that the user does not have yet.' }),
  },
  prepare: ({ nameAttr, inverse }) => ({
    create: ({ directory }) =>
      onDirectory(directory, async (people, { user }) => {
        const entry = await findInDirectory(people, new Dn([]), nameAttr, user, 'LoadGroups')
        takeLoadedGroups(user, entry?.attributes.values('memberOf').map(groupName) ?? [], inverse)
        return next
      }),
  }),
})

export const loadGroupsFromTarget = defineCustomTask({
  className: 'tasks.LoadGroupsFromTarget',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadGroupsFromTarget'],
  parameters: {
    target: text({ about: 'The target whose memberships are loaded.', required: true, reference: 'target' }),
    nameAttr: nameInTarget,
    inverse: flag({ about: '`true` keeps only the groups of the target that the user does not have yet.' }),
  },
  prepare: ({ target: name, nameAttr, inverse }, places) => ({
    flow: targetNameFlow(nameAttr, places),
    create: ({ targets }) =>
      onTarget(name, targets.get(name), async (target, { user, forTarget }) => {
        const found = await findInTarget(target, user, nameAttr, [], forTarget(name))
        noteVersion(user, name, found)
        takeLoadedGroups(user, found?.groups ?? [], inverse)
        return next
      }),
  }),
})

/** Attributes of entries about the directory, not about the user. */
const directoryAttributes = ['memberOf', 'objectClass']

export const resync = defineTask({
  taskType: 'resync',
  fields: {
    keepExternalAttrs: flag({
      about: '`true` keeps attributes that the directory does not have; `false` when absent.',
    }),
    changeRoot: flag({
      about:
        '`true` finds the user below `newRoot`, also for a login whose [auth.JitProvision](../auth-mechanisms/auth.JitProvision.md) runs the workflow; `false` when absent.',
    }),
    newRoot: text({
      about: 'Where in the directory to look; the whole directory when `changeRoot` is not `true`.',
      fallback: '',
    }),
  },
  prepare: ({ keepExternalAttrs: keepExternal, changeRoot, newRoot }, { issues, pathOf }) => {
    if (changeRoot && newRoot === '') issues.error(pathOf('newRoot'), '"newRoot" is required')
    let base = new Dn([])
    try {
      if (changeRoot) base = Dn.parse(newRoot)
    } catch (error) {
      issues.error(pathOf('newRoot'), error instanceof Error ? error.message : String(error))
    }
    return {
      // The attributes of the directory are not known in advance.
      flow: { ...noFlow, opaque: true, ...(changeRoot ? { reloadsFrom: base } : {}) },
      create: ({ directory }) =>
        onDirectory(directory, async (people, { user }) => {
          const entry = await findInDirectory(people, base, 'uid', user, 'resync')
          if (entry === undefined) {
            throw new GatewayError('WORKFLOW_FAILED', `resync: "${user.userID}" is not in the directory`)
          }
          const loaded = keepExternal ? user.attributes.clone() : new Attributes()
          for (const [name, values] of entry.attributes) loaded.set(name, values)
          for (const name of directoryAttributes) loaded.delete(name)
          const groups = entry.attributes.values('memberOf').map(groupName)
          // Some parts of the directory show the memberships in this attribute, too.
          if (isDeepStrictEqual(entry.attributes.values('groups'), groups)) loaded.delete('groups')
          user.attributes = loaded
          setGroups(user, groups)
          return next
        }),
    }
  },
})

/** A group's name is the first part of its DN. */
function groupName(dn: string): string {
  return Dn.parse(dn).rdns[0]?.[0]?.value ?? dn
}
