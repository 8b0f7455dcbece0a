import { renderGroupName } from '#modules/shared/tasks/task-template.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { createGroup } from './change-group.ts'
import { attributesParameter, groupAttributes, groupFlow, readGroupAttributes } from './group-attributes.ts'
import { groupTarget, namesParameter, readTemplates, takesNoGroup, targetParameter } from './group-task.ts'

const parameters = { target: targetParameter, name: namesParameter, attributes: attributesParameter }

/** Creates groups. An existing equal group is left unchanged. */
export default defineCustomTask({
  className: 'tasks.CreateGroup',
  parameters,
  parse: (params, issues, context) => ({
    target: readParameters(parameters, params, issues, context).target,
    names: readTemplates(params, 'name', ['$groupname$'], issues),
    attributes: readGroupAttributes(params, issues),
  }),
  flow: ({ target, attributes }) => groupFlow(target, attributes),
  create: ({ target: targetName, names, attributes }, { targets }) => {
    return onTarget(targetName, targets.get(targetName), async (target, context) => {
      const groups = groupTarget(target, targetName)
      const values = Object.entries(groupAttributes(attributes, context)).filter(([, list]) => list.length > 0)
      // A caller that has just found no group sends an empty version.
      const mustBeNew = takesNoGroup(context)
      for (const name of names.map((template) => renderGroupName(template, context))) {
        await createGroup(groups, name, Object.fromEntries(values), context.forTarget(targetName), { mustBeNew })
      }
      return next
    })
  },
})
