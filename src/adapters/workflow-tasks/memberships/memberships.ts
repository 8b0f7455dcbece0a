import { findInTarget } from '#adapters/workflow-tasks/shared/find-workflow-user.ts'
import { expiryFields, readTaskExpiry } from '#adapters/workflow-tasks/shared/task-expiry.ts'
import { defineTask, template } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderGroupName, renderTask, templateReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Template } from '#kernel/template.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { flag, list, text } from '#sdk/module/parameter-types.ts'
import { dnKey, externalKey } from '#sdk/target/group-mappings.ts'
import { onContext, onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import {
  changeGroups,
  isGroupIn,
  noteVersion,
  rewriteGroups,
  setGroups,
  timeGroup,
  unionOfGroups,
  withoutGroups,
} from '#sdk/workflow/workflow-user.ts'

/** Tasks that change the groups of the workflow's user. */

export const addGroup = defineTask({
  taskType: 'addGroup',
  fields: {
    name: template({ about: 'The group; a template.', required: true }),
    remove: template({
      about:
        '`true` takes the user out of the group; a template that gives `true` or `false`, `false` when absent or empty.',
    }),
    ...expiryFields,
  },
  prepare: ({ name, remove, ...times }, { issues, pathOf }) => {
    const expiry = readTaskExpiry(times, { issues, pathOf })
    if (remove.keys.length === 0 && remove.attributes.length === 0 && readFlag(remove.text) === undefined) {
      issues.error(pathOf('remove'), '"remove" must be true, false or a template')
    }
    return {
      flow: {
        ...noFlow,
        reads: [...templateReads(name, pathOf('name')), ...templateReads(remove, pathOf('remove')), ...expiry.reads],
        takesAnyGroup: isOnlyValues(name),
      },
      create: () =>
        onContext((context) => {
          const group = renderGroupName(name, context)
          const removed = readFlag(renderTask(remove, context))
          if (removed === undefined) {
            throw new GatewayError('WORKFLOW_FAILED', `addGroup: "${remove.text}" gave neither true nor false`)
          }
          const until = removed ? undefined : expiry.of(context)
          changeGroups(context.user, removed ? [] : [group], removed ? [group] : [])
          if (until !== undefined || context.user.timedGroups !== undefined) timeGroup(context.user, group, until)
          return next
        }),
    }
  },
})

/** Whether the name has no fixed part. */
const isOnlyValues = (name: Template): boolean =>
  name.text !== '' && name.render({ key: () => '', attribute: () => '' }).trim() === ''

function readFlag(text: string): boolean | undefined {
  const word = text.trim().toLowerCase()
  if (word === '' || word === 'false') return false
  return word === 'true' ? true : undefined
}

export const attributeToGroups = defineCustomTask({
  className: 'tasks.Attribute2Groups',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.Attribute2Groups',
    'com.tremolosecurity.provisioning.customTasks.Attribute2Group',
  ],
  parameters: {
    attributeName: text({
      about: 'The attribute whose values become groups; it is then removed from the user.',
      required: true,
    }),
  },
  prepare: ({ attributeName: attribute }, { pathOf }) => ({
    flow: { ...noFlow, reads: [{ attribute, path: pathOf('attributeName') }], takesAnyGroup: true },
    create: () =>
      onContext(({ user }) => {
        changeGroups(user, user.attributes.values(attribute), [])
        user.attributes.delete(attribute)
        return next
      }),
  }),
})

export const mergeGitHubGroups = defineCustomTask({
  className: 'tasks.MergeGitHubGroups',
  aliases: ['com.tremolosecurity.unison.proxy.auth.github.MergeGithubGroups'],
  parameters: {},
  prepare: () => ({
    flow: { ...noFlow, mayRead: ['githubOrgs', 'githubTeams'], takesAnyGroup: true },
    create: () =>
      onContext(({ user }) => {
        changeGroups(user, [...user.attributes.values('githubOrgs'), ...user.attributes.values('githubTeams')], [])
        return next
      }),
  }),
})

export const clearGroups = defineCustomTask({
  className: 'tasks.ClearGroups',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.ClearGroups',
    'com.tremolosecurity.provisioning.tasks.ClearGroups',
  ],
  parameters: {},
  prepare: () => ({
    create: () =>
      onContext(({ user }) => {
        setGroups(user, [])
        return next
      }),
  }),
})

export const filterGroups = defineCustomTask({
  className: 'tasks.FilterGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.FilterGroups'],
  parameters: {
    name: list({ about: 'A group that passes, letter case included; may be repeated.', required: true }),
  },
  prepare: ({ name: names }) => {
    const passing = new Set(names)
    return {
      create: () =>
        onContext(({ user }) => {
          rewriteGroups(user, (groups) => groups.filter((name) => passing.has(name)))
          return next
        }),
    }
  },
})

export const mapGroups = defineCustomTask({
  className: 'tasks.MapGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.MapGroups'],
  parameters: {
    map: list({ about: '`target=source`: the group `source` becomes `target`; may be repeated.', required: true }),
  },
  prepare: ({ map }, { issues, pathOf }) => {
    const names = new Map<string, string>()
    for (const [i, rule] of map.entries()) {
      const cut = rule.indexOf('=')
      if (cut <= 0 || cut === rule.length - 1) issues.error(pathOf('map', i), `"${rule}" is not target=source`)
      else names.set(rule.slice(cut + 1), rule.slice(0, cut))
    }
    const mapped = (name: string): string => names.get(name) ?? name
    return {
      create: () =>
        onContext(({ user }) => {
          rewriteGroups(user, (groups) => unionOfGroups(groups.map(mapped), []))
          return next
        }),
    }
  },
})

export const mapAttributeToGroups = defineCustomTask({
  className: 'tasks.MapAttributeToGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.MapJitGroups'],
  parameters: {
    attributeName: text({
      about: 'The attribute with the names of groups of the identity provider.',
      required: true,
    }),
    groupMap: list({
      about:
        '`group=distinguished name`: the user is put in `group` if the attribute has that name, and taken out of it if not; may be repeated. With several names for one group, one is enough.',
      requirement: 'unless `groupMetaData` is true',
    }),
    groupMetaData: flag({
      about: 'Whether the [GroupMetaData](../kinds/GroupMetaData.md) objects are rules too.',
    }),
  },
  prepare: ({ attributeName: attribute, groupMap, groupMetaData }, { issues, pathOf }) => {
    if (groupMap.length === 0 && !groupMetaData) {
      issues.error(pathOf('groupMap'), 'parameter "groupMap" is required where groupMetaData is not true')
    }
    const rules = groupMap.flatMap((rule, i) => {
      const cut = rule.indexOf('=')
      const external = rule.slice(cut + 1)
      if (cut > 0 && dnKey(external) !== undefined) return [{ group: rule.slice(0, cut), external }]
      issues.error(pathOf('groupMap', i), `"${rule}" is not group=distinguished name`)
      return []
    })
    return {
      flow: { ...noFlow, reads: [{ attribute, path: pathOf('attributeName') }] },
      create: ({ groupMappings }) =>
        onContext(async ({ user }) => {
          const names = new Set(user.attributes.values(attribute).map(externalKey))
          const all = groupMetaData ? [...rules, ...(await groupMappings.list())] : rules
          const wanted = unionOfGroups(
            all.filter(({ external }) => names.has(externalKey(external))).map(({ group }) => group),
            [],
          )
          const others = all.map(({ group }) => group)
          changeGroups(user, wanted, withoutGroups(others, wanted))
          return next
        }),
    }
  },
})

export const keepTargetGroups = defineCustomTask({
  className: 'tasks.KeepTargetGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.JITIgnoreGroups'],
  parameters: {
    groupName: list({
      about: 'A group that the user keeps if the target has the membership; may be repeated.',
      required: true,
    }),
    targetName: text({ about: 'The target whose memberships are read.', required: true, reference: 'target' }),
  },
  prepare: ({ groupName: names, targetName }) => ({
    create: ({ targets }) =>
      onTarget(targetName, targets.get(targetName), async (target, { user, forTarget }) => {
        const found = await findInTarget(target, user, userIdName, [], forTarget(targetName))
        noteVersion(user, targetName, found)
        const kept = names.filter((name) => isGroupIn(found?.groups ?? [], name))
        if (kept.length > 0) changeGroups(user, kept, [])
        return next
      }),
  }),
})
