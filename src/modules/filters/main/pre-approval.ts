import type { SubmitOutcome } from '#contract/main.ts'
import { isUser } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { approvalUser } from '#sdk/approvals.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { WorkflowResult } from '#sdk/workflow.ts'
import type { MainParts } from './main-parts.ts'
import type { ReadyLine } from './request-line.ts'

export type Decision = NonNullable<SubmitOutcome['decision']>

export interface StartedRun {
  readonly result: WorkflowResult
  /** False when the same line was sent before. */
  readonly isNew: boolean
}

/** Of several runs: what is left to others must not be overlooked. */
export const decisionOf = (decisions: readonly Decision[]): Decision =>
  (['left', 'taken'] as const).find((one) => decisions.includes(one)) ?? 'none'

/**
 * The requester's own decision about the first approval of the run, by the rules of that approval: where it does not let
 * requesters decide, it stays open for others. Later approvals are not touched, and nothing is decided when a line is
 * sent again: what became of it is told.
 */
export async function decideFirst(
  { result, isNew }: StartedRun,
  { approve, comment }: NonNullable<ReadyLine['preApproval']>,
  { subject, request }: Exchange,
  { host }: MainParts,
): Promise<Decision> {
  const [first] = await host.approvals.ofRun(result.id)
  // A run that waits for others of the same person has yet to come to its approval, and then nobody is here to decide.
  if (first === undefined) return result.status === 'accepted' ? 'left' : 'none'
  if (!isNew || result.status !== 'waiting' || first.state !== 'open') {
    return isUser(first.decision?.by?.identity, approvalUser(subject)) ? 'taken' : 'left'
  }
  try {
    await host.approvals.decide(approvalUser(subject), { approval: first.id, approve, comment, requestId: request.id })
    return 'taken'
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.isRefusal) throw error
    host.log.info('a pre-approval was not taken; the approval stays open', {
      approval: first.id,
      reason: error.message,
    })
    return 'left'
  }
}
