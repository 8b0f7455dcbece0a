import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { rewriteGroups } from '#sdk/workflow/workflow-user.ts'

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
    onContext(({ user }) => {
      rewriteGroups(user, (groups) => groups.filter((name) => passing.has(name)))
      return next
    }),
})
