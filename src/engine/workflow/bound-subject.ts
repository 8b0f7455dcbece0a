import type { Attributes } from '#identity/attributes.ts'
import { AnotherSubject } from '#sdk/workflow/runs.ts'
import type { BoundSubject } from '#sdk/workflow/workflow.ts'
import type { WorkflowTask, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { copyUser, sameLogin } from '#sdk/workflow/workflow-user.ts'

/**
 * The task, refused with ACCESS_DENIED when it makes the user of a bound run another one. The step ends with that, so no
 * later task calls a target or starts a run for that user.
 */
export function withBoundSubject(task: WorkflowTask): WorkflowTask {
  const { foresee } = task
  return {
    ...(foresee && { foresee: (context) => foresee.call(task, context) }),
    async run(context) {
      const { bound, user } = context
      if (bound === undefined) return await task.run(context)
      const before = copyUser(user)
      const outcome = await task.run(context)
      requireSameUser(before, user, bound)
      return outcome
    },
  }
}

/** Logins may change in letter case, and login attributes may lose values or get the login. */
function requireSameUser(before: WorkflowUser, after: WorkflowUser, { attributes }: BoundSubject): void {
  if (!sameLogin(before.userID, after.userID)) {
    throw new AnotherSubject(`the task changed the login from "${before.userID}" to "${after.userID}"`, after.userID)
  }
  const names = attributes === 'any' ? after.attributes.names() : attributes
  const changed = names.find((name) => !isKept(name, before, after.attributes))
  if (changed === undefined) return
  const detail = `the task set the attribute "${changed}" of "${before.userID}", which logins are made of`
  throw new AnotherSubject(detail, after.attributes.values(changed).join(', '))
}

function isKept(name: string, { userID, attributes }: WorkflowUser, after: Attributes): boolean {
  const own = [userID, ...attributes.values(name)]
  return after.values(name).every((value) => own.some((one) => sameLogin(one, value)))
}
