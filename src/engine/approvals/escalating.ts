import type { Approval } from '#domain/approval.ts'
import type { ClaimedTimer } from '#domain/timer.ts'
import { approvalRow, byItself, loginsText } from '#engine/approvals/approval-audit.ts'
import type { ApprovalAuthority } from '#engine/approvals/approval-authority.ts'
import { type ApprovalPlan, readPlan, storePlan } from '#engine/approvals/approval-plan.ts'
import type { Approver } from '#engine/approvals/approver-finder.ts'
import { approverMails } from '#engine/approvals/approver-mail.ts'
import { findApprovers, type OpeningParts } from '#engine/approvals/opening.ts'
import type { TimerOutcome } from '#engine/workflow/timer-loop.ts'
import { formerIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { ApprovalStore } from '#storage/approval-store.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'

export interface EscalatingParts extends OpeningParts {
  readonly approvals: Pick<ApprovalStore, 'get' | 'reassign'>
  readonly audit: Pick<AuditStore, 'append'>
  readonly authority: ApprovalAuthority
  readonly log: Logger
}

/** How soon a timer is looked at again that met another change of the same approval. */
const againMillis = 1_000

/**
 * Gives an approval that nobody decided in time to those of its next escalation. However late and in whatever order its
 * timers come, an approval only ever moves forward. One that was decided meanwhile is left alone.
 */
export async function escalate(timer: ClaimedTimer, parts: EscalatingParts): Promise<TimerOutcome> {
  const approval = timer.approval === undefined ? undefined : await parts.approvals.get(timer.approval)
  const { escalation: step } = timer.data
  if (approval?.state !== 'open' || typeof step !== 'number' || step <= approval.escalation) return 'done'
  const plan = readPlan(approval.rules)
  const next = plan.escalations[step - 1]
  if (next?.onlyIf !== undefined && !(await applies(next.onlyIf, approval, parts))) {
    await note(approval, `escalation ${step} was not called for`, parts)
    return 'done'
  }
  const rules = [next?.approvers, plan.failure].filter((some) => some !== undefined)
  const found = await firstFound(rules, approval, plan, parts)
  if (found === undefined) {
    parts.log.error('escalation failed: no approver found', { approval: approval.id, label: approval.label, step })
    await note(approval, `escalation ${step} found no approver`, parts)
    return 'done'
  }
  return await reassign(approval, { ...plan, approvers: found.rules }, found.approvers, step, timer, parts)
}

async function applies(
  rule: Rule,
  { subject, who }: Approval,
  { authority, finder }: EscalatingParts,
): Promise<boolean> {
  return await authority.passes(
    [rule],
    await finder.entriesOf({ login: subject, identity: who.subject ?? formerIdentity(subject) }),
  )
}

async function firstFound(
  choices: readonly (readonly Rule[])[],
  { id, allowSelf }: Approval,
  { involved }: ApprovalPlan,
  { finder, log }: EscalatingParts,
): Promise<{ readonly rules: readonly Rule[]; readonly approvers: readonly Approver[] } | undefined> {
  for (const rules of choices) {
    try {
      const approvers = await findApprovers(rules, allowSelf ? undefined : involved, finder)
      if (approvers.length > 0) return { rules, approvers }
    } catch (err) {
      if (!(err instanceof GatewayError) || err.code !== 'NO_APPROVERS') throw err
      log.error('too many were found to escalate to', { approval: id, err })
    }
  }
  return undefined
}

async function reassign(
  approval: Approval,
  plan: ApprovalPlan,
  approvers: readonly Approver[],
  escalation: number,
  timer: ClaimedTimer,
  parts: EscalatingParts,
): Promise<TimerOutcome> {
  const { id, run, step, version } = approval
  const { mail, involved } = plan
  const occasion = `${id} ${escalation}`
  const about = { run, step, occasion, approval: { id, version: version + 1 }, involved }
  const logins = approvers.map(({ login }) => login)
  try {
    await parts.approvals.reassign({
      approval: id,
      version,
      approvers: approvers.map(({ login, identity }) => ({ login, identity })),
      rules: storePlan(plan),
      escalation,
      audit: [approvalRow(approval, byItself, parts.clock(), `escalated to ${loginsText(logins)}`)],
      mails: mail === undefined ? [] : await approverMails(approvers, mail, about, parts),
      timers: [],
      timer,
    })
    return 'ended'
  } catch (error) {
    const code = error instanceof GatewayError ? error.code : undefined
    // Decided, or its run ended: the timer went with it. Changed otherwise: what is to be done is to be seen again.
    if (code === 'CONFLICT' || code === 'NOT_FOUND') return 'done'
    if (code === 'VERSION_MISMATCH') return { again: { inMillis: againMillis } }
    throw error
  }
}

const note = (approval: Approval, text: string, { audit, clock }: EscalatingParts): Promise<void> =>
  audit.append([approvalRow(approval, byItself, clock(), text)])
