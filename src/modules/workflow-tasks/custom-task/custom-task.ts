import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'

const fields = {
  className: { about: 'The class of the custom task; see the reference of custom tasks.', required: true },
  secretParams: { about: 'Accepted while empty: parameters from secrets are not read here.', required: false },
  params: { about: 'Its parameters: a map of texts or lists of texts, or a list of `{name, value}`.', required: false },
} as const

const customTask: TaskModule = {
  taskType: 'customTask',
  fields,
  branches: false,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const className = read.text('className')
    if (read.list('secretParams').length > 0) {
      issues.error(read.pathOf('secretParams'), 'a task takes no parameters from secrets; give them to its target')
    }
    const params = context.params(given['params'] ?? {}, read.pathOf('params'), issues)
    const module = context.customTasks.find(className)
    if (module !== undefined) return { calls: [], name: module.className, ...module.prepare(params, issues, context) }
    if (className !== '') issues.error(read.pathOf('className'), context.customTasks.unknown(className))
    return {
      calls: [],
      flow: { ...noFlow, opaque: true },
      create: async () => {
        throw new Error(context.customTasks.unknown(className))
      },
    }
  },
}

export default customTask
