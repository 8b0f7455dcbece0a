import { auditedCall } from '#modules/shared/tasks/audited-call.ts'
import { checkVersion, targetUser } from '#modules/shared/tasks/target-user.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import { next, type TaskModule } from '#sdk/workflow/workflow-task.ts'
import { takeVersion } from '#sdk/workflow/workflow-user.ts'

const fields = {
  target: { about: 'The target that the user is deleted from.', required: true },
} as const

const deleteUser: TaskModule = {
  taskType: 'delete',
  fields,
  branches: false,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const name = read.text('target')
    if (name !== '') context.refer('target', name, read.pathOf('target'))
    return {
      calls: [],
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
    }
  },
}

export default deleteUser
