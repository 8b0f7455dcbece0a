import { noFlow } from '#sdk/flow.ts'
import { onPaper } from '#sdk/foresight.ts'
import { list } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { defineCustomTask, next } from '#sdk/workflow-task.ts'
import { rewriteGroups } from '#sdk/workflow-user.ts'

const parameters = {
  name: list({ about: 'A group that passes, letter case included; may be repeated.', required: true }),
}

export default defineCustomTask({
  className: 'tasks.FilterGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.FilterGroups'],
  parameters,
  parse: (params, issues, context) => new Set(readParameters(parameters, params, issues, context).name),
  flow: () => noFlow,
  create: (passing) =>
    onPaper(({ user }) => {
      rewriteGroups(user, (groups) => groups.filter((name) => passing.has(name)))
      return next
    }),
})
