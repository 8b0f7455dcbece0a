import { isSecretAttribute } from '#identity/attributes.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { defineCustomTask, next, type WorkflowUser } from '#sdk/workflow/workflow-task.ts'

const parameters = {
  message: text({ about: 'A text in the log line that identifies the task.' }),
}

/** The most values in one line. */
const maxValues = 200
const maxValueLength = 256

export default defineCustomTask({
  className: 'tasks.PrintUserInfo',
  aliases: ['com.tremolosecurity.provisioning.customTasks.PrintUserInfo'],
  parameters,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  flow: () => noFlow,
  create: ({ message = '' }) => ({
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
})

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
