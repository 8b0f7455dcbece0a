import { randomUUID } from 'node:crypto'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'

const parameters = {
  attributeName: text({
    about: 'The attribute that gets a new random UUID; its former values are removed.',
    required: true,
  }),
}

export default defineCustomTask({
  className: 'tasks.GenUUIDAttribute',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.GenUUIDAttribute',
    'com.tremolosecurity.provisioning.customTasks.com.tremolosecurity.provisioning.customTasks',
    'com.tremolosecurity.provisioning.customTasks.com.tremolosecurity.provisioning.customTasks.GenUUIDAttribute',
  ],
  parameters,
  parse: (params, issues, context) => ({
    ...readParameters(parameters, params, issues, context),
    path: params.pathOf('attributeName'),
  }),
  flow: ({ attributeName, path }) => ({ ...noFlow, produces: [{ attribute: attributeName, path }] }),
  create: ({ attributeName }) => ({
    run({ user }) {
      user.attributes.set(attributeName, [randomUUID()])
      return next
    },
    /** The value is not known in advance. */
    preview({ user }) {
      user.attributes.set(attributeName, ['…'])
      return next
    },
  }),
})
