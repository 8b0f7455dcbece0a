import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { changeGroups } from '#sdk/workflow/workflow-user.ts'

const parameters = {
  attributeName: text({
    about: 'The attribute whose values become groups; it is then removed from the user.',
    required: true,
  }),
}

export default defineCustomTask({
  className: 'tasks.Attribute2Groups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.Attribute2Groups'],
  parameters,
  parse: (params, issues, context) => ({
    ...readParameters(parameters, params, issues, context),
    path: params.pathOf('attributeName'),
  }),
  flow: ({ attributeName, path }) => ({
    ...noFlow,
    reads: [{ attribute: attributeName, path }],
    takesAnyGroup: true,
  }),
  create: ({ attributeName }) =>
    onContext(({ user }) => {
      changeGroups(user, user.attributes.values(attributeName), [])
      user.attributes.delete(attributeName)
      return next
    }),
})
