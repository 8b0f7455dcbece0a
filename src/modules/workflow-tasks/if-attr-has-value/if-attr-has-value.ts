import { userIdName } from '#identity/mapping/mapped-value.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const fields = {
  name: { about: 'The attribute; `$key$` is replaced.', required: true },
  value: { about: 'One of its values must be exactly this; a template.', required: true },
} as const

const ifAttrHasValue: TaskModule = {
  taskType: 'ifAttrHasValue',
  fields,
  branches: true,
  prepare: (given, path, issues) => {
    const read = new TaskFields(fields, given, path, issues)
    const name = read.nameTemplate('name')
    const value = read.template('value')
    const isFixed = name.keys.length === 0 && name.text !== '' && name.text !== userIdName
    const reads = isFixed ? [{ attribute: name.text, path: read.pathOf('name') }] : []
    return {
      calls: [],
      flow: { ...noFlow, reads: [...reads, ...templateReads(value, read.pathOf('value'))] },
      create: async () =>
        onContext((context) => {
          const holds = userValues(context.user, renderTask(name, context)).includes(renderTask(value, context))
          return { kind: 'branch', branch: holds ? 'onSuccess' : 'onFailure' }
        }),
    }
  },
}

export default ifAttrHasValue
