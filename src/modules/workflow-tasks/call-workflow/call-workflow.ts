import { defineTask } from '#modules/shared/tasks/task-fields.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'

const fields = {
  name: text({
    about: 'The workflow whose tasks run next, on the same user and request. Not a template.',
    required: true,
    reference: 'workflow',
  }),
}

export default defineTask({
  taskType: 'callWorkflow',
  fields,
  branches: false,
  prepare: ({ name: workflow }) => ({
    calls: workflow === '' ? [] : [workflow],
    flow: noFlow,
    create: async () => onContext(() => ({ kind: 'call', workflow })),
  }),
})
