import type { NewApproval } from '#domain/approval.ts'
import type { NewTimer } from '#domain/timer.ts'
import { currentUser, type RunProgress } from '#engine/workflow/run-progress.ts'
import { deadlineTimer, wakeTimer } from '#engine/workflow/run-timers.ts'
import type { WaitOutcome } from '#engine/workflow/walk.ts'
import type { ApprovalOpener } from '#engine/workflow/workflow-services.ts'

/** What a run that waits is stored with. */
export interface Waiting {
  readonly approval?: NewApproval
  readonly timers: readonly NewTimer[]
}

/** Throws what opening an approval throws, such as NO_APPROVERS. */
export async function prepareWait(
  state: RunProgress,
  wait: WaitOutcome,
  approvals: ApprovalOpener,
  deadline: Date | undefined,
): Promise<Waiting> {
  // A deadline is watched while the run waits; its timers end with whatever it waits for.
  const timers = deadline === undefined ? [] : [deadlineTimer(state.id, deadline)]
  if ('until' in wait) return { timers: [...timers, wakeTimer(state.id, wait.until)] }
  const { id, workflow: name, subject, requestor, caller, who, request, newAccount } = state
  const run = {
    ...{ id, name, step: state.steps + 1, subject, requestor, who, user: currentUser(state), request },
    ...(newAccount === undefined ? {} : { newAccount }),
  }
  const approval = await approvals.open(wait.approval, caller === undefined ? run : { ...run, caller })
  return { approval, timers }
}
