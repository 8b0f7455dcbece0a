import { GatewayError } from '#kernel/errors.ts'
import type { Template } from '#kernel/template.ts'
import { expiryFields, readTaskExpiry } from '#modules/shared/tasks/task-expiry.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { renderGroupName, renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { next, type TaskModule } from '#sdk/workflow/workflow-task.ts'
import { changeGroups, timeGroup } from '#sdk/workflow/workflow-user.ts'

const fields = {
  name: { about: 'The group; a template.', required: true },
  remove: {
    about:
      '`true` takes the user out of the group; a template that gives `true` or `false`, `false` when absent or empty.',
    required: false,
  },
  ...expiryFields,
} as const

const addGroup: TaskModule = {
  taskType: 'addGroup',
  fields,
  branches: false,
  prepare: (given, path, issues) => {
    const read = new TaskFields(fields, given, path, issues)
    const name = read.template('name')
    const remove = read.template('remove')
    const expiry = readTaskExpiry(read, issues)
    if (remove.keys.length === 0 && remove.attributes.length === 0 && readFlag(remove.text) === undefined) {
      issues.error(read.pathOf('remove'), '"remove" must be true, false or a template')
    }
    return {
      calls: [],
      flow: {
        ...noFlow,
        reads: [
          ...templateReads(name, read.pathOf('name')),
          ...templateReads(remove, read.pathOf('remove')),
          ...expiry.reads,
        ],
        takesAnyGroup: isOnlyValues(name),
      },
      create: async () =>
        onContext((context) => {
          const group = renderGroupName(name, context)
          const answer = renderTask(remove, context)
          const removed = readFlag(answer)
          if (removed === undefined) {
            throw new GatewayError('WORKFLOW_FAILED', `addGroup: "${remove.text}" gave neither true nor false`)
          }
          const until = removed ? undefined : expiry.of(context)
          changeGroups(context.user, removed ? [] : [group], removed ? [group] : [])
          if (until !== undefined || context.user.timedGroups !== undefined) timeGroup(context.user, group, until)
          return next
        }),
    }
  },
}

export default addGroup

/** Whether nothing of the name is fixed. */
const isOnlyValues = (name: Template): boolean =>
  name.text !== '' && name.render({ key: () => '', attribute: () => '' }).trim() === ''

function readFlag(text: string): boolean | undefined {
  const word = text.trim().toLowerCase()
  if (word === '' || word === 'false') return false
  return word === 'true' ? true : undefined
}
