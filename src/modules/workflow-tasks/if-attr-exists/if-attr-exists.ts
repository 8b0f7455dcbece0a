import { defineTask, nameTemplate } from '#modules/shared/tasks/task-fields.ts'
import { renderTask } from '#modules/shared/tasks/task-template.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const fields = {
  name: nameTemplate({ about: 'The attribute; `$key$` is replaced.', required: true }),
}

/** A check for an attribute's presence is not a read, so the data-flow check does not warn. */
export default defineTask({
  taskType: 'ifAttrExists',
  fields,
  branches: true,
  prepare: ({ name }) => ({
    flow: { ...noFlow, mayRead: name.keys.length === 0 && name.attributes.length === 0 ? [name.text] : 'any' },
    create: async () =>
      onContext((context) => {
        const exists = userValues(context.user, renderTask(name, context)).length > 0
        return { kind: 'branch', branch: exists ? 'onSuccess' : 'onFailure' }
      }),
  }),
})
