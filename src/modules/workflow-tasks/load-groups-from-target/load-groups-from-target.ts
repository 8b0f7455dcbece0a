import { userIdName } from '#identity/mapping/mapped-value.ts'
import { findInTarget } from '#modules/shared/tasks/find-workflow-user.ts'
import { flag, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { defineCustomTask, next } from '#sdk/workflow/workflow-task.ts'
import { noteVersion, takeLoadedGroups } from '#sdk/workflow/workflow-user.ts'

const parameters = {
  target: text({ about: 'The target whose memberships are loaded.', required: true, reference: 'target' }),
  nameAttr: text({
    about: 'The attribute whose first value is the name in the target; the login if the user has none.',
    required: true,
  }),
  inverse: flag({ about: '`true` keeps only the groups of the target that the user does not have yet.' }),
}

export default defineCustomTask({
  className: 'tasks.LoadGroupsFromTarget',
  aliases: ['com.tremolosecurity.provisioning.customTasks.LoadGroupsFromTarget'],
  parameters,
  parse: (params, issues, context) => ({
    ...readParameters(parameters, params, issues, context),
    path: params.pathOf('nameAttr'),
  }),
  flow: ({ nameAttr, path }) => ({
    ...noFlow,
    reads: nameAttr === userIdName ? [] : [{ attribute: nameAttr, path }],
    loginReads: nameAttr === userIdName ? [] : [nameAttr],
  }),
  create: ({ target: name, nameAttr, inverse }, { targets }) =>
    onTarget(name, targets.get(name), async (target, { user, forTarget }) => {
      const found = await findInTarget(target, user, nameAttr, [], forTarget(name))
      noteVersion(user, name, found)
      takeLoadedGroups(user, found?.groups ?? [], inverse)
      return next
    }),
})
