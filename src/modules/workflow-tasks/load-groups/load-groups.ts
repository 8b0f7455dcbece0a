import { Dn } from '#identity/dn.ts'
import { findInDirectory } from '#modules/shared/tasks/find-workflow-user.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onDirectory } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { takeLoadedGroups } from '#sdk/workflow/workflow-user.ts'

const parameters = {
  nameAttr: text({ about: 'The attribute of the directory with the login.', required: true }),
  inverse: flag({ about: '`true` keeps only the groups of the directory that the user does not have yet.' }),
}

export default defineCustomTask({
  className: 'tasks.LoadGroups',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadGroups'],
  parameters,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  flow: () => noFlow,
  create: ({ nameAttr, inverse }, { directory }) =>
    onDirectory(directory, async (people, { user }) => {
      const entry = await findInDirectory(people, new Dn([]), nameAttr, user, 'LoadGroups')
      takeLoadedGroups(user, entry?.attributes.values('memberOf').map(groupName) ?? [], inverse)
      return next
    }),
})

/** A group's name is the first part of its DN. */
function groupName(dn: string): string {
  return Dn.parse(dn).rdns[0]?.[0]?.value ?? dn
}
