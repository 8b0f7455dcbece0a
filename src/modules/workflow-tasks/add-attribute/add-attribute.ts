import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isEngineKey } from '#sdk/workflow/workflow.ts'
import { next, type RequestMap, type TaskModule, type WorkflowUser } from '#sdk/workflow/workflow-task.ts'

const fields = {
  name: { about: 'The attribute or request key; `$key$` is replaced.', required: true },
  value: {
    about: 'The value to add; a template. With `remove`, the value to remove; empty removes all values.',
    required: false,
  },
  remove: { about: 'Removes the value instead of adding it; `false` when absent.', required: false },
  addToRequest: {
    about: 'Changes the request map instead of the user; `false` when absent. Keys of the engine are refused.',
    required: false,
  },
} as const

const addAttribute: TaskModule = {
  taskType: 'addAttribute',
  fields,
  branches: false,
  prepare: (given, path, issues) => {
    const read = new TaskFields(fields, given, path, issues)
    const name = read.nameTemplate('name')
    const value = read.template('value')
    const remove = read.flag('remove', false)
    const addToRequest = read.flag('addToRequest', false)
    if (!remove && value.text === '') issues.error(read.pathOf('value'), '"value" is required')
    const isFixed = name.keys.length === 0
    if (isFixed && addToRequest && isEngineKey(name.text)) {
      issues.error(read.pathOf('name'), `"${name.text}" is a key of the engine`)
    }
    const producesUserAttribute = !remove && !addToRequest
    return {
      calls: [],
      flow: {
        reads: templateReads(value, read.pathOf('value')),
        produces: producesUserAttribute && isFixed ? [{ attribute: name.text, path: read.pathOf('name') }] : [],
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
}

export default addAttribute

function changeRequest(request: RequestMap, key: string, value: string, remove: boolean): void {
  if (remove) request.delete(key)
  else request.set(key, value)
}

/** An empty value adds nothing, since an attribute holds no empty values. */
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
