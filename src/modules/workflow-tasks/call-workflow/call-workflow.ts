import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'

const fields = {
  name: { about: 'The workflow whose tasks run next, on the same user and request. Not a template.', required: true },
} as const

const callWorkflow: TaskModule = {
  taskType: 'callWorkflow',
  fields,
  branches: false,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const workflow = read.text('name')
    if (workflow !== '') context.refer('workflow', workflow, read.pathOf('name'))
    return {
      calls: workflow === '' ? [] : [workflow],
      flow: noFlow,
      create: async () => onContext(() => ({ kind: 'call', workflow })),
    }
  },
}

export default callWorkflow
