import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { setGroups } from '#sdk/workflow/workflow-user.ts'

export default defineCustomTask({
  className: 'tasks.ClearGroups',
  aliases: [
    'com.tremolosecurity.provisioning.customTasks.ClearGroups',
    'com.tremolosecurity.provisioning.tasks.ClearGroups',
  ],
  parameters: {},
  parse: (params, issues, context) => readParameters({}, params, issues, context),
  flow: () => noFlow,
  create: () =>
    onContext(({ user }) => {
      setGroups(user, [])
      return next
    }),
})
