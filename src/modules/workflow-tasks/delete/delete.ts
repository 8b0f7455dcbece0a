import { auditedCall } from '#modules/shared/tasks/audited-call.ts'
import { checkVersion, targetUser } from '#modules/shared/tasks/target-user.ts'
import { defineTask } from '#modules/shared/tasks/task-fields.ts'
import { text } from '#sdk/module/parameter-types.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { next } from '#sdk/workflow/workflow-task.ts'
import { takeVersion } from '#sdk/workflow/workflow-user.ts'

const fields = {
  target: text({ about: 'The target that the user is deleted from.', required: true, reference: 'target' }),
}

export default defineTask({
  taskType: 'delete',
  fields,
  branches: false,
  prepare: ({ target: name }) => ({
    flow: noFlow,
    create: async ({ targets }) => {
      const mapping = targets.mapping?.(name)
      return onTarget(name, targets.get(name), async (target, { user, forTarget }) => {
        const request = forTarget(name)
        const { userID, attributes, groups } = await targetUser(user, mapping)
        const found = await target.findUser(userID, [], request)
        if (found === undefined) return next
        const expectedVersion = takeVersion(user, name, [userID])?.version
        checkVersion(found, expectedVersion)
        const change: TargetChange = { subject: 'entry', action: 'delete', attribute: 'userID', value: userID }
        await auditedCall(
          request,
          () => [change],
          (audited) =>
            target.deleteUser(
              { userID, attributes, groups },
              audited,
              expectedVersion === undefined ? {} : { expectedVersion },
            ),
        )
        return next
      })
    },
  }),
})
