import { auditedCall } from '#adapters/workflow-tasks/shared/audited-call.ts'
import { renderGroupName, renderTask } from '#adapters/workflow-tasks/shared/task-template.ts'
import type { GroupChange } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { entryChange, groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import { noFlow, type TaskFlow, writingFlow } from '#sdk/flow/flow.ts'
import { flag, list, text } from '#sdk/module/parameter-types.ts'
import type { GroupTarget, TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { hasGroups, nestsGroups } from '#sdk/target/target.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { noVersion } from '#sdk/workflow/workflow.ts'
import {
  type CustomTaskPlaces,
  defineCustomTask,
  next,
  type TaskContext,
  type TaskPlan,
} from '#sdk/workflow/workflow-task.ts'

/** Tasks that create, change and delete the groups of a target. */

const targetParameter = text({ about: 'The target that owns the group.', required: true, reference: 'target' })

const namesParameter = list({ about: 'The group; a template, may be repeated.', requirement: 'no, `$groupname$`' })

const attributesParameter = list({
  about:
    "`name=value`, where the value is a template, or the name of an attribute of the workflow's user; may be repeated. All attributes of the workflow's user when absent.",
})

const checkVersionParameter = flag({
  about:
    '`"false"` ignores the version that the caller named in `groupversion`, for a target other than the one it was read from.',
  fallback: true,
})

/** Of attributes that tell OpenUnison how to write to a database. */
const statementPrefix = 'unison.'

/** As in OpenUnison: creates groups with only these attributes, and leaves existing ones unchanged. */
export const addGroupToStore = defineCustomTask({
  className: 'tasks.AddGroupToStore',
  aliases: ['com.tremolosecurity.provisioning.customTasks.AddGroupToStore'],
  parameters: {
    target: targetParameter,
    name: list({ about: 'The group; a template, may be repeated.', required: true }),
    attributes: list({
      about:
        '`name=value`, where the value is a template; may be repeated. Names that begin with `unison.` are not used: they are statements for the database of OpenUnison, and the target has its own.',
    }),
  },
  prepare: ({ target, attributes }, places) => {
    for (const [i, entry] of attributes.entries()) {
      if (!entry.includes('=')) places.issues.error(places.pathOf('attributes', i), `"${entry}" is not name=value`)
      if (entry.startsWith(`${statementPrefix}group.create.sql=`)) {
        const problem = 'the statement is not used: the target creates groups with its own, without these parameters'
        places.issues.warning(places.pathOf('attributes', i), problem)
      }
    }
    const names = readTemplates('name', undefined, places)
    const values = (readGroupAttributes(places) ?? []).filter(({ name }) => !name.startsWith(statementPrefix))
    return {
      flow: writingFlow,
      create: onGroups(target, async (groups, context, request) => {
        const given = newAttributes(values, context)
        for (const name of names.map((template) => renderGroupName(template, context))) {
          if ((await groups.findGroup(name)) === undefined) await createGroup(groups, name, given, request, false)
        }
      }),
    }
  },
})

/** Creates the groups of the workflow's user that the target does not have, without attributes. */
export const createUserGroups = defineCustomTask({
  className: 'tasks.CreateUserGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.JITBasicDBCreateGroups'],
  parameters: {
    targetName: text({ about: 'The target that gets the groups.', required: true, reference: 'target' }),
  },
  prepare: ({ targetName }) => ({
    flow: writingFlow,
    create: onGroups(targetName, async (groups, { user }, request) => {
      for (const name of user.keepGroups ? (user.groupChanges?.add ?? []) : user.groups) {
        if ((await groups.findGroup(name)) === undefined) await createGroup(groups, name, {}, request, false)
      }
    }),
  }),
})

/** Creates groups. An existing equal group is left unchanged. */
export const createGroups = defineCustomTask({
  className: 'tasks.CreateGroup',
  parameters: { target: targetParameter, name: namesParameter, attributes: attributesParameter },
  prepare: ({ target }, places) => {
    const names = readTemplates('name', '$groupname$', places)
    const attributes = readGroupAttributes(places)
    return {
      flow: groupFlow(target, attributes),
      create: onGroups(target, async (groups, context, request) => {
        const given = newAttributes(attributes, context)
        // A caller that has just found no group sends an empty version.
        const mustBeNew = takeVersion(context) === noVersion
        for (const name of names.map((template) => renderGroupName(template, context))) {
          await createGroup(groups, name, given, request, mustBeNew)
        }
      }),
    }
  },
})

/** Renames a group and writes its attributes. Attributes that are already correct stay unchanged. */
export const updateGroup = defineCustomTask({
  className: 'tasks.UpdateGroup',
  parameters: {
    target: targetParameter,
    name: text({ about: 'The group, by its current name; a template.', fallback: '$groupname$' }),
    newName: text({
      about: 'The new name; a template. Without a value, the name stays.',
      fallback: '$newgroupname$',
    }),
    attributes: attributesParameter,
    checkVersion: checkVersionParameter,
  },
  prepare: ({ target, checkVersion }, places) => {
    const names = readTemplates('name', '$groupname$', places)
    const newNames = readTemplates('newName', '$newgroupname$', places)
    const attributes = readGroupAttributes(places)
    return {
      flow: groupFlow(target, attributes),
      create: onGroups(target, async (groups, context, request) => {
        const [name] = names.map((template) => renderGroupName(template, context))
        if (name === undefined) return
        const [newName = ''] = newNames.map((template) =>
          renderTask(template, context).trim() === '' ? '' : renderGroupName(template, context),
        )
        const change = {
          attributes: groupAttributes(attributes, context),
          ...(newName === '' || newName === name ? {} : { newName }),
          ...(checkVersion ? expectedVersion(context) : {}),
        }
        await changeGroup(groups, name, change, request)
      }),
    }
  },
})

/** Deletes groups; their members stay. A missing group is not an error. */
export const deleteGroup = defineCustomTask({
  className: 'tasks.DeleteGroup',
  aliases: ['com.tremolosecurity.provisioning.customTasks.RemoveGroupFromStore'],
  parameters: { target: targetParameter, name: namesParameter, checkVersion: checkVersionParameter },
  prepare: ({ target, checkVersion }, places) => {
    const names = readTemplates('name', '$groupname$', places)
    // A version belongs to one group; with several it would be ambiguous.
    const isChecked = checkVersion && names.length === 1
    return {
      flow: writingFlow,
      create: onGroups(target, async (groups, context, request) => {
        const options = isChecked ? expectedVersion(context) : {}
        for (const name of names.map((template) => renderGroupName(template, context))) {
          await audited(
            groups,
            name,
            request,
            (audit) => groups.deleteGroup(name, audit, options),
            (found) => (found === undefined ? [] : [entryChange('entry', 'delete', 'name', name)]),
          )
        }
      }),
    }
  },
})

/** Adds a group to a group, or removes it. A membership that is already correct stays unchanged. */
export const nestGroup = defineCustomTask({
  className: 'tasks.NestGroup',
  parameters: {
    target: text({
      about:
        'The target that owns both groups. It must be able to nest groups: [`targets.Database`](../targets/targets.Database.md) can.',
      required: true,
      reference: 'target',
    }),
    name: text({ about: 'The group that gets or loses the member; a template.', fallback: '$groupname$' }),
    memberGroup: text({
      about: 'The group that becomes or stops being a member; a template.',
      fallback: '$membergroup$',
    }),
    remove: text({
      about: 'A template; `true` removes the member group, anything else adds it.',
      fallback: '$removegroup$',
    }),
  },
  prepare: ({ target }, places) => {
    const names = readTemplates('name', '$groupname$', places)
    const members = readTemplates('memberGroup', '$membergroup$', places)
    const removes = readTemplates('remove', '$removegroup$', places)
    return {
      flow: writingFlow,
      create: onGroups(target, async (groups, context, request) => {
        if (!nestsGroups(groups)) throw new GatewayError('NOT_SUPPORTED', `target "${target}" does not nest groups`)
        const [name] = names.map((template) => renderGroupName(template, context))
        const [member] = members.map((template) => renderGroupName(template, context))
        if (name === undefined || member === undefined) return
        const isRemoved = removes.some((template) => renderTask(template, context).trim().toLowerCase() === 'true')
        // The ids are known if the caller read the groups; a name alone means the group that has it now.
        const id = textOf(context, 'membergroupid') ?? (await groups.findGroup(member))?.id
        if (id === undefined && isRemoved) return
        if (id === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${member}"`)
        const list = [{ name: member, id }]
        const groupId = textOf(context, 'groupid')
        const wanted = {
          add: isRemoved ? [] : list,
          remove: isRemoved ? list : [],
          ...(groupId === undefined ? {} : { groupId }),
        }
        // The target reports its own change; this is for a lost report.
        const change = entryChange('group', isRemoved ? 'delete' : 'add', 'members', member)
        await request.planChanges?.([{ ...change, group: name }])
        await groups.changeMemberGroups(name, wanted, request)
      }),
    }
  },
})

/** Runs on the target's groups. Throws NOT_SUPPORTED for a target that has no groups of its own. */
const onGroups =
  (
    name: string,
    run: (groups: GroupTarget, context: TaskContext, request: TargetRequest) => Promise<void>,
  ): TaskPlan['create'] =>
  ({ targets }) =>
    onTarget(name, targets.get(name), async (target, context) => {
      if (!hasGroups(target)) {
        throw new GatewayError('NOT_SUPPORTED', `target "${name}" does not make, change or delete groups`, {
          publicText: `Target "${name}" cannot create, change or delete groups, so this change of a group is not possible. Configure groups in the target (a plug-in has the functions addGroup and deleteGroup), or use another target for groups.`,
        })
      }
      await run(target, context, context.forTarget(name))
      return next
    })

/** The templates of a parameter, or the fallback if it is absent. Invalid ones are reported. */
function readTemplates(name: string, fallback: string | undefined, places: CustomTaskPlaces): Template[] {
  const given = places.params.values(name).filter((value) => value !== '')
  const texts = given.length === 0 && fallback !== undefined ? [fallback] : given
  return texts.flatMap((value, i) => readTemplate(value, name, i, places) ?? [])
}

function readTemplate(value: string, name: string, i: number, places: CustomTaskPlaces): Template | undefined {
  try {
    return parseTemplate(value, { keys: true, attributes: true })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    places.issues.error(places.pathOf(name, i), `"${name}": ${message}`)
    return undefined
  }
}

/** One attribute of a group: a configured value, or the values of the workflow's user. */
interface GroupAttribute {
  readonly name: string
  readonly value: Template | undefined
}

/** Undefined if the parameter is absent. */
function readGroupAttributes(places: CustomTaskPlaces): readonly GroupAttribute[] | undefined {
  const given = places.params.values('attributes').filter((entry) => entry !== '')
  if (given.length === 0) return undefined
  return given.flatMap((entry, i): GroupAttribute[] => {
    const cut = entry.indexOf('=')
    if (cut === 0) places.issues.error(places.pathOf('attributes', i), `"${entry}" names no attribute`)
    if (cut < 0) return [{ name: entry, value: undefined }]
    const value = readTemplate(entry.slice(cut + 1), 'attributes', i, places)
    return value === undefined ? [] : [{ name: entry.slice(0, cut), value }]
  })
}

/** The attributes of the workflow's user that reach the group. */
function groupFlow(target: string, attributes: readonly GroupAttribute[] | undefined): TaskFlow {
  const copied = attributes?.flatMap(({ name, value }) => (value === undefined ? [name] : []))
  const rendered = attributes?.flatMap(({ value }) => value?.attributes ?? []) ?? []
  return { ...noFlow, mayRead: rendered, writes: true, writesGroup: { target, attributes: copied } }
}

/** Attributes by name. */
type Values = Readonly<Record<string, readonly string[]>>

/** The group's new attributes; an attribute without values is removed. */
function groupAttributes(attributes: readonly GroupAttribute[] | undefined, context: TaskContext): Values {
  const { user } = context
  const wanted = new Map<string, readonly string[]>()
  if (attributes === undefined) {
    for (const name of user.cleared ?? []) wanted.set(name, [])
    for (const [name, values] of user.attributes) wanted.set(name, values)
  }
  for (const { name, value } of attributes ?? []) {
    const rendered = value === undefined ? user.attributes.values(name) : [renderTask(value, context)]
    wanted.set(name, [...(wanted.get(name) ?? []), ...rendered.filter((text) => text !== '')])
  }
  return Object.fromEntries(wanted)
}

/** The attributes of a group that does not exist yet, which has none without values. */
const newAttributes = (attributes: readonly GroupAttribute[] | undefined, context: TaskContext): Values =>
  Object.fromEntries(Object.entries(groupAttributes(attributes, context)).filter(([, values]) => values.length > 0))

/** The version that the caller named for the group, for the first write that requests it. */
function takeVersion({ request }: TaskContext): unknown {
  const version = request.get('groupversion')
  request.delete('groupversion')
  return version
}

function expectedVersion(context: TaskContext): { readonly expectedVersion?: string } {
  const version = takeVersion(context)
  return typeof version === 'string' && version !== '' ? { expectedVersion: version } : {}
}

function textOf({ request }: TaskContext, key: string): string | undefined {
  const value = request.get(key)
  return typeof value === 'string' && value !== '' ? value : undefined
}

const createGroup = (
  groups: GroupTarget,
  name: string,
  attributes: Values,
  request: TargetRequest,
  mustBeNew: boolean,
): Promise<void> =>
  audited(
    groups,
    name,
    request,
    (audit) => groups.createGroup(name, attributes, audit, { mustBeNew }),
    (found) => (found === undefined ? newGroupChanges(name, Attributes.from(attributes)) : []),
  )

/** A group that an earlier attempt renamed is found by its new name. */
async function changeGroup(
  groups: GroupTarget,
  name: string,
  change: GroupChange,
  request: TargetRequest,
): Promise<void> {
  const write = (present: string, wanted: GroupChange): Promise<void> =>
    audited(
      groups,
      present,
      request,
      (audit) => groups.updateGroup(present, wanted, audit),
      (found) =>
        found === undefined
          ? []
          : groupChanges(found, wanted.newName ?? found.name, Object.entries(wanted.attributes ?? {})),
    )
  try {
    await write(name, change)
  } catch (error) {
    const { newName, ...rest } = change
    const isGone = error instanceof GatewayError && error.code === 'NOT_FOUND'
    if (!isGone || newName === undefined || (await groups.findGroup(newName)) === undefined) throw error
    await write(newName, rest)
  }
}

/**
 * Reads and records the planned change first, unless the target commits its changes with their audit anyway. If there
 * is nothing to change, the target detects it and reports it itself.
 */
async function audited(
  groups: GroupTarget,
  name: string,
  request: TargetRequest,
  call: (request: TargetRequest) => Promise<void>,
  expected: (found: Group | undefined) => readonly TargetChange[],
): Promise<void> {
  if (request.planChanges === undefined) return await call(request)
  const changes = expected(await groups.findGroup(name))
  const renamed = changes.find(({ subject, action }) => subject === 'entry' && action === 'replace')
  const owned = changes.map((one) => (one.subject === 'attribute' ? { ...one, group: renamed?.value ?? name } : one))
  if (owned.length === 0) return await call(request)
  await auditedCall(request, () => owned, call)
}
