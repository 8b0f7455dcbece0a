import { noFlow } from '#sdk/flow.ts'
import { onPaper } from '#sdk/foresight.ts'
import { list } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { defineCustomTask, next } from '#sdk/workflow-task.ts'
import { rewriteGroups, unionOfGroups } from '#sdk/workflow-user.ts'

const parameters = {
  map: list({ about: '`target=source`: the group `source` becomes `target`; may be repeated.', required: true }),
}

export default defineCustomTask({
  className: 'tasks.MapGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.MapGroups'],
  parameters,
  parse: (params, issues, context) => {
    const names = new Map<string, string>()
    for (const [i, rule] of readParameters(parameters, params, issues, context).map.entries()) {
      const cut = rule.indexOf('=')
      if (cut <= 0 || cut === rule.length - 1) issues.error(params.pathOf('map', i), `"${rule}" is not target=source`)
      else names.set(rule.slice(cut + 1), rule.slice(0, cut))
    }
    return names
  },
  flow: () => noFlow,
  create: (names) =>
    onPaper(({ user }) => {
      rewriteGroups(user, (groups) =>
        unionOfGroups(
          groups.map((name) => names.get(name) ?? name),
          [],
        ),
      )
      return next
    }),
})
