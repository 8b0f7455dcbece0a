import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderTask } from '#modules/shared/tasks/task-template.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const fields = {
  name: { about: 'The attribute; `$key$` is replaced.', required: true },
} as const

/** Asking whether an attribute is there is not reading it: the data-flow check has nothing to warn about. */
const ifAttrExists: TaskModule = {
  taskType: 'ifAttrExists',
  fields,
  branches: true,
  prepare: (given, path, issues) => {
    const name = new TaskFields(fields, given, path, issues).nameTemplate('name')
    return {
      calls: [],
      flow: { ...noFlow, mayRead: name.keys.length === 0 && name.attributes.length === 0 ? [name.text] : 'any' },
      create: async () =>
        onContext((context) => {
          const exists = userValues(context.user, renderTask(name, context)).length > 0
          return { kind: 'branch', branch: exists ? 'onSuccess' : 'onFailure' }
        }),
    }
  },
}

export default ifAttrExists
