import { noFlow } from '#sdk/flow.ts'
import { onPaper } from '#sdk/foresight.ts'
import { TaskFields } from '#sdk/task-fields.ts'
import { renderTask } from '#sdk/task-template.ts'
import type { TaskModule } from '#sdk/workflow-task.ts'
import { userValues } from '#sdk/workflow-user.ts'

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
        onPaper((context) => {
          const exists = userValues(context.user, renderTask(name, context)).length > 0
          return { kind: 'branch', branch: exists ? 'onSuccess' : 'onFailure' }
        }),
    }
  },
}

export default ifAttrExists
