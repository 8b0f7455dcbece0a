import { entryChange } from '#identity/entry-changes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { renderGroupName, renderTask } from '#modules/shared/tasks/task-template.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { nestsGroups } from '#sdk/target/target.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { groupTarget, readTemplates } from './group-task.ts'

const parameters = {
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
}

/** Adds a group to a group, or removes it. A membership that is already correct stays unchanged. */
export default defineCustomTask({
  className: 'tasks.NestGroup',
  parameters,
  parse: (params, issues, context) => ({
    target: readParameters(parameters, params, issues, context).target,
    names: readTemplates(params, 'name', ['$groupname$'], issues),
    members: readTemplates(params, 'memberGroup', ['$membergroup$'], issues),
    removes: readTemplates(params, 'remove', ['$removegroup$'], issues),
  }),
  flow: () => noFlow,
  create: ({ target: targetName, names, members, removes }, { targets }) => {
    return onTarget(targetName, targets.get(targetName), async (target, context) => {
      const groups = groupTarget(target, targetName)
      if (!nestsGroups(groups)) {
        throw new GatewayError('NOT_SUPPORTED', `target "${targetName}" does not nest groups`)
      }
      const [name] = names.map((template) => renderGroupName(template, context))
      const [member] = members.map((template) => renderGroupName(template, context))
      if (name === undefined || member === undefined) return next
      const isRemoved = removes.some((template) => renderTask(template, context).trim().toLowerCase() === 'true')
      // The ids are known if the caller read the groups; a name alone means the group that has it now.
      const id = textOf(context, 'membergroupid') ?? (await groups.findGroup(member))?.id
      if (id === undefined && isRemoved) return next
      if (id === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${member}"`)
      const list = [{ name: member, id }]
      const groupId = textOf(context, 'groupid')
      const wanted = {
        add: isRemoved ? [] : list,
        remove: isRemoved ? list : [],
        ...(groupId === undefined ? {} : { groupId }),
      }
      const request = context.forTarget(targetName)
      // The target reports its own change; this is for a lost report.
      await request.intend?.([
        { ...entryChange('group', isRemoved ? 'delete' : 'add', 'members', member), group: name },
      ])
      await groups.changeMemberGroups(name, wanted, request)
      return next
    })
  },
})

function textOf({ request }: TaskContext, key: string): string | undefined {
  const value = request.get(key)
  return typeof value === 'string' && value !== '' ? value : undefined
}
