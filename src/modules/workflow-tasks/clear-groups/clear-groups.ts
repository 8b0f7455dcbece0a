import { noFlow } from '#sdk/flow.ts'
import { onPaper } from '#sdk/foresight.ts'
import { readParameters } from '#sdk/parameters.ts'
import { defineCustomTask, next } from '#sdk/workflow-task.ts'
import { setGroups } from '#sdk/workflow-user.ts'

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
    onPaper(({ user }) => {
      setGroups(user, [])
      return next
    }),
})
