import { GatewayError } from '#kernel/errors.ts'
import type { Template } from '#kernel/template.ts'
import { expiryFields, readTaskExpiry } from '#modules/shared/tasks/task-expiry.ts'
import { defineTask, template } from '#modules/shared/tasks/task-fields.ts'
import { renderGroupName, renderTask, templateReads } from '#modules/shared/tasks/task-template.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { next } from '#sdk/workflow/workflow-task.ts'
import { changeGroups, timeGroup } from '#sdk/workflow/workflow-user.ts'

const fields = {
  name: template({ about: 'The group; a template.', required: true }),
  remove: template({
    about:
      '`true` takes the user out of the group; a template that gives `true` or `false`, `false` when absent or empty.',
  }),
  ...expiryFields,
}

export default defineTask({
  taskType: 'addGroup',
  fields,
  branches: false,
  prepare: ({ name, remove, ...times }, { issues, pathOf }) => {
    const expiry = readTaskExpiry(times, { issues, pathOf })
    if (remove.keys.length === 0 && remove.attributes.length === 0 && readFlag(remove.text) === undefined) {
      issues.error(pathOf('remove'), '"remove" must be true, false or a template')
    }
    return {
      flow: {
        ...noFlow,
        reads: [...templateReads(name, pathOf('name')), ...templateReads(remove, pathOf('remove')), ...expiry.reads],
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
})

/** Whether the name has no fixed part. */
const isOnlyValues = (name: Template): boolean =>
  name.text !== '' && name.render({ key: () => '', attribute: () => '' }).trim() === ''

function readFlag(text: string): boolean | undefined {
  const word = text.trim().toLowerCase()
  if (word === '' || word === 'false') return false
  return word === 'true' ? true : undefined
}
