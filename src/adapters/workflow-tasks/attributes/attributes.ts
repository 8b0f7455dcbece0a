import { randomUUID } from 'node:crypto'
import { defineTask, nameTemplate, template } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { renderTask, templateReads } from '#adapters/workflow-tasks/shared/task-template.ts'
import { isSecretAttribute } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { noFlow } from '#sdk/flow/flow.ts'
import { flag, list, text } from '#sdk/module/parameter-types.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { isReadOnlyKey } from '#sdk/workflow/workflow.ts'
import { defineCustomTask, next, type RequestMap, type WorkflowUser } from '#sdk/workflow/workflow-task.ts'

/** Tasks that change or log the attributes of the workflow's user, or values of the request. */

export const addAttribute = defineTask({
  taskType: 'addAttribute',
  fields: {
    name: nameTemplate({ about: 'The attribute or request key; `$key$` is replaced.', required: true }),
    value: template({
      about: 'The value to add; a template. With `remove`, the value to remove; empty removes all values.',
    }),
    remove: flag({ about: 'Removes the value instead of adding it; `false` when absent.' }),
    addToRequest: flag({
      about: 'Changes the request map instead of the user; `false` when absent. Keys of the engine are refused.',
    }),
  },
  prepare: ({ name, value, remove, addToRequest }, { issues, pathOf }) => {
    if (!remove && value.text === '') issues.error(pathOf('value'), '"value" is required')
    const isFixed = name.keys.length === 0
    if (isFixed && addToRequest && isReadOnlyKey(name.text)) {
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
      create: () =>
        onContext((context) => {
          const key = renderTask(name, context)
          const text = renderTask(value, context)
          if (key === '' || isForbiddenKey(key) || (addToRequest && isReadOnlyKey(key))) {
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
function changeUser({ attributes }: WorkflowUser, name: string, value: string, remove: boolean): void {
  if (!remove) attributes.add(name, value === '' ? [] : [value])
  else if (value === '') attributes.delete(name)
  else {
    const others = attributes.values(name).filter((one) => one !== value)
    attributes.set(name, others)
  }
}

export const copyFromUserToRequest = defineCustomTask({
  className: 'tasks.CopyFromUserToRequest',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.CopyFromUserToRequest',
    'com.tremolosecurity.provisioning.customTasks',
  ],
  parameters: {
    attribute: list({
      about: 'An attribute to copy; may be repeated. Keys of the engine are refused.',
      required: true,
    }),
    keepInUser: flag({ about: '`false`, also when absent, removes the attribute from the user.' }),
  },
  prepare: ({ attribute: names, keepInUser }, { issues, pathOf }) => {
    for (const [i, name] of names.entries()) {
      if (isReadOnlyKey(name)) issues.error(pathOf('attribute', i), `"${name}" is a key of the engine`)
    }
    return {
      flow: { ...noFlow, reads: names.map((attribute, i) => ({ attribute, path: pathOf('attribute', i) })) },
      create: () =>
        onContext(({ user, request }) => {
          for (const name of names) {
            const value = user.attributes.first(name)
            if (value === undefined) continue
            request.set(name, value)
            if (!keepInUser) user.attributes.delete(name)
          }
          return next
        }),
    }
  },
})

/** Copies values of the configuration to the request, where users may see them. */
export const environmentToRequest = defineCustomTask({
  className: 'tasks.EnvironmentToRequest',
  aliases: ['com.tremolosecurity.provisioning.tasks.Env2Req', 'com.tremolosecurity.provisioning.customTasks.Env2Req'],
  parameters: {
    '<name>': text({
      about: 'The value of the request that is set: the name of an environment variable, or of a value of `#[NAME]`.',
    }),
  },
  prepare: (given, { issues, context, pathOf }) => {
    const values: [name: string, text: string][] = []
    for (const [name, from = ''] of given['<name>']) {
      const path = pathOf(name)
      if (isReadOnlyKey(name)) issues.error(path, `"${name}" is a key of the engine`)
      const found = context.shownValue?.(from) ?? { kind: 'absent' }
      if (found.kind === 'value') values.push([name, found.text])
      else if (found.kind === 'absent') {
        issues.warning(
          path,
          `"${from}" is neither in the environment nor in a values document, so "${name}" is not set`,
        )
      } else {
        const text = `"${from}" is, or looks like, a secret: users would see it in the request. Give it to the object that needs it as #[${from}] or in secretParams`
        issues.error(path, text)
      }
    }
    if (given['<name>'].size === 0)
      issues.error(pathOf('').slice(0, -1), 'a value to copy is required, such as "name: VARIABLE"')
    return {
      create: () =>
        onContext(({ request }) => {
          for (const [name, text] of values) request.set(name, text)
          return next
        }),
    }
  },
})

export const genUuidAttribute = defineCustomTask({
  className: 'tasks.GenUUIDAttribute',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.GenUUIDAttribute',
    'com.tremolosecurity.provisioning.customTasks.com.tremolosecurity.provisioning.customTasks',
    'com.tremolosecurity.provisioning.customTasks.com.tremolosecurity.provisioning.customTasks.GenUUIDAttribute',
  ],
  parameters: {
    attributeName: text({
      about: 'The attribute that gets a new random UUID; its former values are removed.',
      required: true,
    }),
  },
  prepare: ({ attributeName }, { pathOf }) => ({
    flow: { ...noFlow, produces: [{ attribute: attributeName, path: pathOf('attributeName') }] },
    create: () => ({
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
  }),
})

export const addTimestampToUser = defineCustomTask({
  className: 'tasks.AddTimestampToUser',
  aliases: ['com.tremolosecurity.provisioning.customTasks.AddTimestampToUser'],
  parameters: {
    attributeName: text({
      about: 'The attribute that gets the time of the step, in milliseconds since 1970; its former values are removed.',
      required: true,
    }),
  },
  prepare: ({ attributeName }, { pathOf }) => ({
    flow: { ...noFlow, produces: [{ attribute: attributeName, path: pathOf('attributeName') }] },
    create: ({ clock }) => ({
      run({ user }) {
        user.attributes.set(attributeName, [String(clock().getTime())])
        return next
      },
      /** The time is not known in advance. */
      preview({ user }) {
        user.attributes.set(attributeName, ['…'])
        return next
      },
    }),
  }),
})

export const clearPasswordResets = defineCustomTask({
  className: 'tasks.ClearPasswordResets',
  aliases: ['com.tremolosecurity.provisioning.customTasks.ClearPasswordResets'],
  parameters: { mechName: text({ about: 'Not used.' }) },
  prepare: (_, { issues, pathOf }) => {
    const reason = 'the link of a password reset works once and expires automatically'
    issues.warning(pathOf('').slice(0, -1), `tasks.ClearPasswordResets has no effect here: ${reason}`)
    return { create: () => onContext(() => next) }
  },
})

export const printUserInfo = defineCustomTask({
  className: 'tasks.PrintUserInfo',
  aliases: ['com.tremolosecurity.provisioning.customTasks.PrintUserInfo'],
  parameters: { message: text({ about: 'A text in the log line that identifies the task.' }) },
  prepare: ({ message = '' }) => ({
    create: () => ({
      run({ user, log }) {
        log.info('workflow user', {
          note: message,
          userID: user.userID,
          attributes: shownAttributes(user),
          groups: user.keepGroups ? undefined : user.groups.slice(0, maxValues),
          groupChanges: user.groupChanges,
        })
        return next
      },
      preview: () => next,
    }),
  }),
})

/** The most values in one line. */
const maxValues = 200
const maxValueLength = 256

/** Secrets are named but not shown; long values and long lists are truncated. */
function shownAttributes(user: WorkflowUser): Record<string, unknown> {
  const shown: Record<string, unknown> = Object.create(null)
  let room = maxValues
  for (const [name, values] of user.attributes) {
    if (room <= 0) break
    shown[name] = isSecretAttribute(name) ? '[redacted]' : values.slice(0, room).map(shortened)
    room -= values.length
  }
  return shown
}

const shortened = (value: string): string =>
  value.length <= maxValueLength ? value : `${value.slice(0, maxValueLength)}… (${value.length} characters)`
