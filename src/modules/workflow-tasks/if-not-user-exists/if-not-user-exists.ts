import { userIdName } from '#identity/mapping/mapped-value.ts'
import { findInTarget } from '#modules/shared/tasks/find-workflow-user.ts'
import { defineTask } from '#modules/shared/tasks/task-fields.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'

const fields = {
  target: text({ about: 'The target to query.', required: true, reference: 'target' }),
  uidAttribute: text({
    about: 'The attribute whose first value is the name to find; the login if the user has none.',
    required: true,
  }),
}

export default defineTask({
  taskType: 'ifNotUserExists',
  fields,
  branches: true,
  prepare: ({ target: name, uidAttribute }, { pathOf }) => {
    const isRead = uidAttribute !== '' && uidAttribute !== userIdName
    return {
      flow: { ...noFlow, reads: isRead ? [{ attribute: uidAttribute, path: pathOf('uidAttribute') }] : [] },
      create: async ({ targets }) =>
        onTarget(name, targets.get(name), async (target, { user, forTarget }) => {
          const found = await findInTarget(target, user, uidAttribute, [], forTarget(name))
          return { kind: 'branch', branch: found === undefined ? 'onSuccess' : 'onFailure' }
        }),
    }
  },
})
