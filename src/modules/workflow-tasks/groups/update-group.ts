import { GatewayError } from '#kernel/errors.ts'
import { renderGroupName, renderTask } from '#modules/shared/tasks/task-template.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { GroupChange, GroupTarget, TargetRequest } from '#sdk/target/target.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { updateGroup } from './change-group.ts'
import { attributesParameter, groupAttributes, groupFlow, readGroupAttributes } from './group-attributes.ts'
import { checkVersionParameter, groupTarget, readTemplates, takeGroupVersion, targetParameter } from './group-task.ts'

const parameters = {
  target: targetParameter,
  name: text({ about: 'The group, by its current name; a template.', fallback: '$groupname$' }),
  newName: text({
    about: 'The new name; a template. Without a value, the name stays.',
    fallback: '$newgroupname$',
  }),
  attributes: attributesParameter,
  checkVersion: checkVersionParameter,
}

/** Renames a group and writes its attributes. Attributes that are already correct stay unchanged. */
export default defineCustomTask({
  className: 'tasks.UpdateGroup',
  parameters,
  parse: (params, issues, context) => {
    const { target, checkVersion } = readParameters(parameters, params, issues, context)
    return {
      target,
      checkVersion,
      names: readTemplates(params, 'name', ['$groupname$'], issues),
      newNames: readTemplates(params, 'newName', ['$newgroupname$'], issues),
      attributes: readGroupAttributes(params, issues),
    }
  },
  flow: ({ target, attributes }) => groupFlow(target, attributes),
  create: ({ target: targetName, names, newNames, attributes, checkVersion }, { targets }) => {
    return onTarget(targetName, targets.get(targetName), async (target, context) => {
      const groups = groupTarget(target, targetName)
      const [name] = names.map((template) => renderGroupName(template, context))
      if (name === undefined) return next
      const [newName = ''] = newNames.map((template) =>
        renderTask(template, context).trim() === '' ? '' : renderGroupName(template, context),
      )
      const change = {
        attributes: groupAttributes(attributes, context),
        ...(newName === '' || newName === name ? {} : { newName }),
        ...(checkVersion ? takeGroupVersion(context) : {}),
      }
      await update(groups, name, change, context.forTarget(targetName))
      return next
    })
  },
})

/** A group that an earlier attempt renamed is found by its new name. */
async function update(groups: GroupTarget, name: string, change: GroupChange, request: TargetRequest): Promise<void> {
  try {
    await updateGroup(groups, name, change, request)
  } catch (error) {
    const { newName, ...rest } = change
    const isGone = error instanceof GatewayError && error.code === 'NOT_FOUND'
    if (!isGone || newName === undefined || (await groups.findGroup(newName)) === undefined) throw error
    await updateGroup(groups, newName, rest, request)
  }
}
