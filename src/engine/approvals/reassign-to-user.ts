import type { Approval } from '#domain/approval.ts'
import { type Actor, approvalRow } from '#engine/approvals/approval-audit.ts'
import { isInvolved } from '#engine/approvals/approval-authority.ts'
import { readPlan, storePlan } from '#engine/approvals/approval-plan.ts'
import type { Approver } from '#engine/approvals/approver-finder.ts'
import { type ApproverMailParts, approverMails } from '#engine/approvals/approver-mail.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ApprovalStore } from '#storage/approval-store.ts'

interface ReassigningParts extends ApproverMailParts {
  readonly approvals: Pick<ApprovalStore, 'reassign'>
  readonly clock: Clock
}

/**
 * Passes an open approval to another user, who alone may decide it from then on, until it escalates. Throws
 * BAD_REQUEST if that user does not exist, is deactivated, or is the requester or the subject, even if the approval allows
 * their own decision, or is `operator`, who may not decide it by any rule; CONFLICT if the approval was decided or
 * reassigned meanwhile.
 */
export async function reassignToUser(
  approval: Approval,
  to: string,
  actor: Actor,
  parts: ReassigningParts,
  operator?: Identity,
): Promise<Approval> {
  const { id, run, step, label, state, version, escalation, approvers } = approval
  const plan = readPlan(approval.rules)
  const { mail, involved } = plan
  const next = await findUser(to, parts)
  const { login, identity } = next
  if (isInvolved(involved, next, [next.entry])) throw refused(`"${login}" is the requester or the subject`)
  if (identity === operator) throw refused('operators can only give it to another user')
  const isAlready = state === 'open' && approvers.length === 1 && approvers[0]?.identity === identity
  if (isAlready) throw refused(`"${login}" is the approver already`)
  const about = {
    ...({ subject: 'mail.approval', label, request: approval, involved } as const),
    ...{ run, step, occasion: `${id} reassigned ${version}`, approval: { id, version: version + 1 } },
  }
  try {
    return await parts.approvals.reassign({
      approval: id,
      version,
      approvers: [{ login, identity }],
      rules: storePlan({ ...plan, assigned: [identity] }),
      escalation,
      audit: [approvalRow(approval, actor, parts.clock(), `reassigned to ${login}`)],
      mails: mail === undefined ? [] : await approverMails([next], mail, about, parts),
      timers: [],
    })
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
    throw new GatewayError('CONFLICT', `approval ${id} was reassigned meanwhile`, {
      cause: error,
      publicText: 'This approval was already decided or is no longer open.',
    })
  }
}

async function findUser(login: string, { finder }: ReassigningParts): Promise<Approver> {
  const found = (await finder.byLogin(login)).filter(({ attributes }) => !isDeactivated(attributes))
  const [entry, namesake] = found
  if (entry === undefined) throw refused(`no active user has the login "${login}"`)
  if (namesake !== undefined) throw refused(`several users have the login "${login}"`)
  return { login: entry.attributes.first('uid') ?? login, identity: entry.identity, entry }
}

const refused = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `an approval is not reassigned: ${detail}`, {
    publicText: `This can't be reassigned: ${detail}.`,
  })
