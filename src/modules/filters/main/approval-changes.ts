import type { ForeseenChanges } from '#contract/main-changes.ts'
import type { Subject } from '#identity/subject.ts'
import type { ApprovalView } from '#sdk/approvals.ts'
import { approvalUser } from '#sdk/approvals.ts'
import type { ForeseenStep } from '#sdk/foreseen.ts'
import type { MainParts } from './main-parts.ts'

/** What approving would do, for whoever may decide; undefined where that is not shown. */
export async function changesOf(
  { id, mayDecide }: ApprovalView,
  subject: Subject,
  { host, settings }: MainParts,
): Promise<ForeseenChanges | undefined> {
  if (!mayDecide || !settings.given.showChanges) return undefined
  const foreseen = await host.approvals.foresee(approvalUser(subject), id)
  return foreseen && { steps: foreseen.steps.map(stepView), whole: foreseen.whole }
}

function stepView(step: ForeseenStep): ForeseenChanges['steps'][number] {
  if (step.kind === 'end') return { ...step, expires: step.expires.toISOString() }
  return step.kind === 'wait' ? { ...step, until: step.until.toISOString() } : step
}
