import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { defineTask, nameTemplate, template } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { flag } from '#sdk/module/parameter-types.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { next, type RequestMap, type WorkflowUser } from '#sdk/workflow/workflow-task.ts'

const fields = {
  name: nameTemplate({ about: 'The attribute or request key; `$key$` is replaced.', required: true }),
  value: template({
    about: 'The value to add; a template. With `remove`, the value to remove; empty removes all values.',
  }),
  remove: flag({ about: 'Removes the value instead of adding it; `false` when absent.' }),
  addToRequest: flag({
    about: 'Changes the request map instead of the user; `false` when absent. Keys of the engine are refused.',
  }),
}

export default defineTask({
  taskType: 'addAttribute',
  fields,
  branches: false,
  prepare: ({ name, value, remove, addToRequest }, { issues, pathOf }) => {
    if (!remove && value.text === '') issues.error(pathOf('value'), '"value" is required')
    const isFixed = name.keys.length === 0
    if (isFixed && addToRequest && isEngineKey(name.text)) {
      issues.error(pathOf('name'), `"${name.text}" is a key of the engine`)
    }
    const producesUserAttribute = !remove && !addToRequest
    return {
      flow: {
        reads: templateReads(value, pathOf('value')),
        produces: producesUserAttribute && isFixed ? [{ attribute: name.text, path: pathOf('name') }] : [],
        dropsOthers: false,
        opaque: producesUserAttribute && !isFixed,
        setsValues: producesUserAttribute,
      },
      create: async () =>
        onContext((context) => {
          const key = renderTask(name, context)
          const text = renderTask(value, context)
          if (key === '' || isForbiddenKey(key) || (addToRequest && isEngineKey(key))) {
            throw new GatewayError('BAD_REQUEST', `addAttribute: "${name.text}" gave "${key}", which cannot be set`)
          }
          if (addToRequest) changeRequest(context.request, key, text, remove)
          else changeUser(context.user, key, text, remove)
          return next
        }),
    }
  },
})

function changeRequest(request: RequestMap, key: string, value: string, remove: boolean): void {
  if (remove) request.delete(key)
  else request.set(key, value)
}

/** An empty value adds nothing, since attributes have no empty values. */
function changeUser(user: WorkflowUser, name: string, value: string, remove: boolean): void {
  const { attributes } = user
  if (!remove) attributes.add(name, value === '' ? [] : [value])
  else if (value === '') attributes.delete(name)
  else
    attributes.set(
      name,
      attributes.values(name).filter((held) => held !== value),
    )
}
