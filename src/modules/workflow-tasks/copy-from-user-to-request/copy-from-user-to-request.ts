import { flag, list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'

const parameters = {
  attribute: list({ about: 'An attribute to copy; may be repeated. Keys of the engine are refused.', required: true }),
  keepInUser: flag({ about: '`false`, also when absent, removes the attribute from the user.' }),
}

export default defineCustomTask({
  className: 'tasks.CopyFromUserToRequest',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.CopyFromUserToRequest',
    'com.tremolosecurity.provisioning.customTasks',
  ],
  parameters,
  parse: (params, issues, context) => {
    const config = readParameters(parameters, params, issues, context)
    for (const [i, name] of config.attribute.entries()) {
      if (isEngineKey(name)) issues.error(params.pathOf('attribute', i), `"${name}" is a key of the engine`)
    }
    return {
      ...config,
      places: config.attribute.map((attribute, i) => ({ attribute, path: params.pathOf('attribute', i) })),
    }
  },
  flow: ({ places }) => ({ ...noFlow, reads: places }),
  create: ({ attribute, keepInUser }) =>
    onContext(({ user, request }) => {
      for (const name of attribute) {
        const value = user.attributes.first(name)
        if (value === undefined) continue
        request.set(name, value)
        if (!keepInUser) user.attributes.delete(name)
      }
      return next
    }),
})
