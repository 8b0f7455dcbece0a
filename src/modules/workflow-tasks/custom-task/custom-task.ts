import { defineTask } from '#modules/shared/tasks/task-fields.ts'
import { anything, text } from '#sdk/module/parameter-types.ts'
import { noFlow } from '#sdk/workflow/flow.ts'

const fields = {
  className: text({ about: 'The class of the custom task; see the reference of custom tasks.', required: true }),
  secretParams: anything({ about: 'Accepted while empty: parameters from secrets are not read here.' }),
  params: anything({ about: 'Its parameters: a map of texts or lists of texts, or a list of `{name, value}`.' }),
}

export default defineTask({
  taskType: 'customTask',
  fields,
  branches: false,
  prepare: ({ className, secretParams, params: given }, { issues, context, pathOf }) => {
    if (Array.isArray(secretParams) ? secretParams.length > 0 : secretParams !== undefined) {
      issues.error(pathOf('secretParams'), 'a task takes no parameters from secrets; give them to its target')
    }
    const params = context.params(given ?? {}, pathOf('params'), issues)
    const module = context.customTasks.find(className)
    if (module !== undefined) return { name: module.className, ...module.prepare(params, issues, context) }
    if (className !== '') issues.error(pathOf('className'), context.customTasks.unknown(className))
    return {
      flow: { ...noFlow, opaque: true },
      create: async () => {
        throw new Error(context.customTasks.unknown(className))
      },
    }
  },
})
