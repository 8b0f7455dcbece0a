import { renderGroupName } from '#modules/shared/tasks/task-template.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { createGroup } from './change-group.ts'
import { groupAttributes, readGroupAttributes } from './group-attributes.ts'
import { groupTarget, readTemplates, targetParameter } from './group-task.ts'

const parameters = {
  target: targetParameter,
  name: list({ about: 'The group; a template, may be repeated.', required: true }),
  attributes: list({ about: '`name=value`, where the value is a template; may be repeated.' }),
}

/** As in OpenUnison: creates groups with only these attributes, and leaves existing ones unchanged. */
export default defineCustomTask({
  className: 'tasks.AddGroupToStore',
  aliases: ['com.tremolosecurity.provisioning.customTasks.AddGroupToStore'],
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    for (const [i, entry] of given.attributes.entries()) {
      if (!entry.includes('=')) issues.error(params.pathOf('attributes', i), `"${entry}" is not name=value`)
    }
    return {
      target: given.target,
      names: readTemplates(params, 'name', [], issues),
      attributes: readGroupAttributes(params, issues) ?? [],
    }
  },
  flow: () => noFlow,
  create: ({ target: targetName, names, attributes }, { targets }) => {
    return onTarget(targetName, targets.get(targetName), async (target, context) => {
      const groups = groupTarget(target, targetName)
      const values = Object.entries(groupAttributes(attributes, context)).filter(([, held]) => held.length > 0)
      for (const name of names.map((template) => renderGroupName(template, context))) {
        if ((await groups.findGroup(name)) !== undefined) continue
        await createGroup(groups, name, Object.fromEntries(values), context.forTarget(targetName))
      }
      return next
    })
  },
})
