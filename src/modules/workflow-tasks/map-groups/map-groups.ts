import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onContext } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { rewriteGroups, unionOfGroups } from '#sdk/workflow/workflow-user.ts'

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
    onContext(({ user }) => {
      rewriteGroups(user, (groups) =>
        unionOfGroups(
          groups.map((name) => names.get(name) ?? name),
          [],
        ),
      )
      return next
    }),
})
