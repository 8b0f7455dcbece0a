import { isDeactivated } from '#identity/attributes.ts'
import type { UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import { type Actor, approvalRow } from './approval-audit.ts'
import { type ApproverMailParts, approverMails } from './approver-mail.ts'
import type { Approver, ApproverFinder } from './approvers.ts'
import { readPlan, storePlan } from './approvers.ts'
import { type Bar, barOf, type DecisionParties, type Parties, partiesOf } from './decision-influence.ts'

interface ReassigningParts extends ApproverMailParts {
  readonly approvals: ApprovalStore
  readonly clock: Clock
}

/**
 * Passes an open approval to another user, who alone may decide it from then on, until it escalates. An operator who
 * does that may never decide it. Throws BAD_REQUEST if that user does not exist, is deactivated or may not decide it, even
 * if the approval allows the decision of the requester; CONFLICT if the approval was decided or reassigned meanwhile.
 */
export async function reassignToUser(
  approval: Approval,
  to: string,
  actor: Actor,
  parts: ReassigningParts,
  operator?: UserRef,
): Promise<Approval> {
  const { id, run, step, label, state, version, escalation, approvers } = approval
  const plan = readPlan(approval.rules)
  const { mail } = plan
  const chosenBy = operator === undefined ? {} : { reassignedBy: withParty(plan.reassignedBy, operator) }
  const next = await findApprover(to, { ...plan, ...chosenBy }, parts.finder)
  const { login, identity } = next
  const isAlready = state === 'open' && approvers.length === 1 && approvers[0]?.identity === identity
  if (isAlready) throw refused(`"${login}" is the approver already`)
  const about = {
    subject: 'mail.approval',
    label,
    run,
    parties: { ...plan, ...chosenBy },
    step,
    occasion: `${id} reassigned ${version}`,
    approval: { id, version: version + 1 },
  } as const
  try {
    return await parts.approvals.reassign({
      approval: id,
      version,
      approvers: [{ login, identity }],
      rules: storePlan({ ...plan, ...chosenBy, assigned: [identity] }),
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

const maxOperators = 100

function withParty(parties: Parties = { identities: [], names: [] }, user: UserRef): Parties {
  const { identities, names } = partiesOf([user])
  const all = {
    identities: [...new Set([...parties.identities, ...identities])],
    names: [...new Set([...parties.names, ...names])],
  }
  if (all.identities.length > maxOperators) throw refused(`${maxOperators} operators have reassigned it already`)
  return all
}

const refusals: Readonly<Record<Bar, string>> = {
  involved: 'is the requester or the subject',
  reassigned: "can't decide it: operators can only give it to another user",
}

/** The active user with that login, who may decide. Throws BAD_REQUEST if there is none. */
export async function findApprover(login: string, parties: DecisionParties, finder: ApproverFinder): Promise<Approver> {
  const found = await findUser(login, finder)
  const bar = barOf(parties, found, [found.entry], { forOthers: true })
  if (bar !== undefined) throw refused(`"${found.login}" ${refusals[bar]}`)
  return found
}

async function findUser(login: string, finder: ApproverFinder): Promise<Approver> {
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
