import { userIdName } from '#identity/mapping/mapped-value.ts'
import { defineTask, nameTemplate, template } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { userValues } from '#sdk/workflow/workflow-user.ts'

const fields = {
  name: nameTemplate({ about: 'The attribute; `$key$` is replaced.', required: true }),
  value: template({ about: 'One of its values must be exactly this; a template.', required: true }),
}

export default defineTask({
  taskType: 'ifAttrHasValue',
  fields,
  branches: true,
  prepare: ({ name, value }, { pathOf }) => {
    const isFixed = name.keys.length === 0 && name.text !== '' && name.text !== userIdName
    const reads = isFixed ? [{ attribute: name.text, path: pathOf('name') }] : []
    return {
      flow: { ...noFlow, reads: [...reads, ...templateReads(value, pathOf('value'))] },
      create: async () =>
        onContext((context) => {
          const holds = userValues(context.user, renderTask(name, context)).includes(renderTask(value, context))
          return { kind: 'branch', branch: holds ? 'onSuccess' : 'onFailure' }
        }),
    }
  },
})
