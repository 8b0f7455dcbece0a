import { userIdName } from '#identity/mapping/mapped-value.ts'
import { findInTarget } from '#modules/shared/tasks/find-workflow-user.ts'
import { TaskFields } from '#modules/shared/tasks/task-fields.ts'
import { noFlow } from '#sdk/workflow/flow.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import type { TaskModule } from '#sdk/workflow/workflow-task.ts'

const fields = {
  target: { about: 'The target to query.', required: true },
  uidAttribute: {
    about: 'The attribute whose first value is the name to find; the login if the user has none.',
    required: true,
  },
} as const

const ifNotUserExists: TaskModule = {
  taskType: 'ifNotUserExists',
  fields,
  branches: true,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const name = read.text('target')
    const uidAttribute = read.text('uidAttribute')
    if (name !== '') context.refer('target', name, read.pathOf('target'))
    const isRead = uidAttribute !== '' && uidAttribute !== userIdName
    return {
      calls: [],
      flow: { ...noFlow, reads: isRead ? [{ attribute: uidAttribute, path: read.pathOf('uidAttribute') }] : [] },
      create: async ({ targets }) =>
        onTarget(name, targets.get(name), async (target, { user, forTarget }) => {
          const found = await findInTarget(target, user, uidAttribute, [], forTarget(name))
          return { kind: 'branch', branch: found === undefined ? 'onSuccess' : 'onFailure' }
        }),
    }
  },
}

export default ifNotUserExists
