import { renderGroupName } from '#modules/shared/tasks/task-template.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { deleteGroup } from './change-group.ts'
import {
  checkVersionParameter,
  groupTarget,
  namesParameter,
  readTemplates,
  takeGroupVersion,
  targetParameter,
} from './group-task.ts'

const parameters = { target: targetParameter, name: namesParameter, checkVersion: checkVersionParameter }

/** Deletes groups; their members stay. A missing group is not an error. */
export default defineCustomTask({
  className: 'tasks.DeleteGroup',
  aliases: ['com.tremolosecurity.provisioning.customTasks.RemoveGroupFromStore'],
  parameters,
  parse: (params, issues, context) => {
    const { target, checkVersion } = readParameters(parameters, params, issues, context)
    return { target, checkVersion, names: readTemplates(params, 'name', ['$groupname$'], issues) }
  },
  flow: () => noFlow,
  create: ({ target: targetName, names, checkVersion }, { targets }) => {
    // A version belongs to one group; with several it would be ambiguous.
    const isChecked = checkVersion && names.length === 1
    return onTarget(targetName, targets.get(targetName), async (target, context) => {
      const groups = groupTarget(target, targetName)
      const options = isChecked ? takeGroupVersion(context) : {}
      for (const name of names.map((template) => renderGroupName(template, context))) {
        await deleteGroup(groups, name, options, context.forTarget(targetName))
      }
      return next
    })
  },
})
