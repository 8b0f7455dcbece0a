import type { Approval, ApprovalItem, ApprovalPage } from '#domain/approval.ts'
import type { AuditEntry } from '#domain/audit.ts'
import type { ClaimedTimer } from '#domain/timer.ts'
import { type Actor, approvalRow, byItself, loginsText, ownTarget } from '#engine/approvals/approval-audit.ts'
import { ApprovalAuthority, refsOf, type Standing } from '#engine/approvals/approval-authority.ts'
import type { ApprovalDesk } from '#engine/approvals/approval-desk.ts'
import { type ApprovalPlan, readPlan, storePlan } from '#engine/approvals/approval-plan.ts'
import { type Approver, ApproverFinder } from '#engine/approvals/approver-finder.ts'
import { approverMails, deciderMails, type LinksFor } from '#engine/approvals/approver-mail.ts'
import { findApprovers, type OpeningParts, openApproval } from '#engine/approvals/opening.ts'
import { remind } from '#engine/approvals/reminding.ts'
import type { RuleEvaluator } from '#engine/pipeline/rule-evaluator.ts'
import type { TimerOutcome } from '#engine/workflow/timer-loop.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { MemberDirectory } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import { formerIdentity, type Identity, identitiesOf, isUser, type UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { Rule } from '#sdk/auth/rule.ts'
import type { ApprovalDecision } from '#sdk/workflow/approval.ts'
import type {
  ApprovalUser,
  ApprovalView,
  ApprovalVote,
  DeputyPeriod,
  ExistingAccount,
} from '#sdk/workflow/approvals.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type { ApprovalStore } from '#storage/approval-store.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'
import type { DelegationStore } from '#storage/delegation-store.ts'
import type { MailStore } from '#storage/mail-store.ts'

const maxComment = 2000
/** How many identities the store accepts in one listing, including the caller's own. */
const maxListed = 200
const maxOfRun = 100

export interface DeskParts {
  readonly approvals: ApprovalStore
  readonly delegations: DelegationStore
  readonly mails: Pick<MailStore, 'add'>
  readonly audit: Pick<AuditStore, 'append'>
  readonly directory: MemberDirectory
  /** Where users are looked up. */
  readonly root: Dn
  readonly rules: Pick<RuleEvaluator, 'decide'>
  readonly authorizations: ReadonlyMap<string, Authorization>
  readonly clock: Clock
  readonly log: Logger
  readonly linksFor?: LinksFor
  /** What would follow if that login approved it. Without it there are no previews. */
  readonly preview?: (approval: Approval, by: string) => Promise<Preview | undefined>
  /** For registrations: checks whether the account exists, and ends a registration whose account does. */
  readonly newAccounts?: {
    existing(approval: Approval): Promise<ExistingAccount | undefined>
    /** Ends the run if the account that it should create exists, and returns the reason. */
    refuse(approval: Approval, actor: Actor): Promise<GatewayError | undefined>
  }
}

export function createApprovalDesk(parts: DeskParts): ApprovalDesk {
  const finder = new ApproverFinder(parts)
  const authority = new ApprovalAuthority({ ...parts, finder })
  const all = { ...parts, finder, authority }
  const { approvals, delegations } = parts

  const standingOf = (approval: Approval, user: ApprovalUser): Promise<Standing> =>
    authority.standing(approval, readPlan(approval.rules), user)

  const get = async (user: ApprovalUser, id: string): Promise<ApprovalView | undefined> => {
    const approval = await approvals.get(id)
    if (approval === undefined) return undefined
    const standing = await standingOf(approval, user)
    if (standing.kind !== 'none') return approvalView(approval, standing)
    const decided = refsOf(user).some((ref) => isUser(approval.decision?.by?.identity, ref))
    return decided ? approvalView(approval, standing) : undefined
  }

  return {
    open: (request, run) => openApproval(request, run, all),
    escalate: (timer) => escalate(timer, all),
    remind: (request) => remind(request, all),
    mailsToDeciders: (run, text) => deciderMails(run, text, all),
    get,

    async preview(user, id) {
      const approval = parts.preview === undefined ? undefined : await approvals.get(id)
      if (approval?.state !== 'open') return undefined
      const { kind } = await standingOf(approval, user)
      return kind === 'may' ? await parts.preview?.(approval, user.login) : undefined
    },

    async existing(user, id) {
      const approval = await approvals.get(id)
      if (approval?.state !== 'open' || approval.newAccount !== true) return undefined
      const { kind } = await standingOf(approval, user)
      return kind === 'none' ? undefined : await parts.newAccounts?.existing(approval)
    },

    async ofRun(run) {
      const found = await approvals.listOfRun(run)
      const whole = await Promise.all(found.slice(0, maxOfRun).map(({ id }) => approvals.get(id)))
      return whole.filter((approval) => approval !== undefined)
    },

    async list(user, page): Promise<ApprovalPage> {
      const own = refsOf(user)
      const represented = await representedBy(own, delegations)
      const keys = [...own, ...represented].flatMap(identitiesOf)
      const found = await approvals.listForApprovers(keys.slice(0, maxListed), page)
      const shown = await Promise.all(
        found.approvals.map(async (one) => ((await isHidden(one, own, approvals)) ? [] : [one])),
      )
      return { approvals: shown.flat(), ...(found.next === undefined ? {} : { next: found.next }) }
    },

    async decide(user, vote): Promise<ApprovalView> {
      const approval = await approvals.get(vote.approval)
      const standing = approval === undefined ? undefined : await standingOf(approval, user)
      if (approval === undefined || standing === undefined || standing.kind === 'none') {
        throw new GatewayError('NOT_FOUND', `"${user.login}" has no approval ${vote.approval}`)
      }
      checkVote(vote)
      if (standing.kind === 'barred') throw barred(approval, user)
      if (vote.version !== undefined && vote.version !== approval.version) {
        throw new GatewayError('VERSION_MISMATCH', `approval ${approval.id} has version ${approval.version} by now`)
      }
      if (vote.approve) checkEnd(approval, parts.clock())
      if (vote.approve && approval.newAccount === true && approval.state === 'open') {
        const refusal = await parts.newAccounts?.refuse(approval, actorOf(standing, user, vote))
        if (refusal !== undefined) throw refusal
      }
      const decided = await store(approval, standing, user, vote, parts)
      return approvalView(decided, standing)
    },

    delegate: (user, period) => delegate(user, period, all),
    delegations: async (user) =>
      (await delegations.listOf(user)).map(({ user: of, deputy, ...period }) => ({
        ...period,
        login: of.login,
        deputy: deputy.login,
      })),
    endDelegation: (user, id) => endDelegation(user, id, all),
    represents: async (user) => (await representedBy(refsOf(user), delegations)).map(({ login }) => login),
  }
}

const approvalView = (approval: Approval, standing: Standing): ApprovalView => ({
  ...approval,
  ...(standing.kind === 'may' && standing.onBehalfOf !== undefined ? { onBehalfOf: standing.onBehalfOf } : {}),
  mayDecide: approval.state === 'open' && standing.kind === 'may',
})

async function representedBy(deputy: readonly UserRef[], delegations: DelegationStore): Promise<UserRef[]> {
  const found = await Promise.all(deputy.map((ref) => delegations.representedBy(ref)))
  return [...new Map(found.flat().map((user) => [user.identity, user])).values()]
}

/**
 * Whether it is another user's approval that the caller requested or is the subject of, and so may not decide as a
 * deputy. If only a login is known, it is hidden from the user who has it.
 */
async function isHidden(
  { id, who, requestor, subject }: ApprovalItem,
  own: readonly UserRef[],
  approvals: ApprovalStore,
): Promise<boolean> {
  const isOwn = (identity: Identity): boolean => own.some((ref) => isUser(identity, ref))
  if (![who.requestor ?? formerIdentity(requestor), who.subject ?? formerIdentity(subject)].some(isOwn)) return false
  return !((await approvals.get(id))?.approvers ?? []).some(({ identity }) => isOwn(identity))
}

function checkVote({ comment = '' }: ApprovalVote): void {
  if (comment.length <= maxComment) return
  throw new GatewayError('BAD_REQUEST', 'a comment is too long', {
    publicText: `A comment has at most ${maxComment} characters.`,
  })
}

/** Rejects access that would have expired already: the task that grants it would fail. */
function checkEnd({ id, state, accessEnds }: Approval, now: Date): void {
  if (state !== 'open' || accessEnds === undefined || accessEnds > now) return
  throw new GatewayError('UNPROCESSABLE', `approval ${id} is about access until ${accessEnds.toISOString()}`, {
    publicText: 'The requested expiry date has passed. You can only deny this request.',
  })
}

const barred = ({ id }: Approval, { login }: ApprovalUser): GatewayError =>
  new GatewayError('ACCESS_DENIED', `"${login}" is the requester or the subject of approval ${id}`, {
    publicText: 'Requesters and subjects cannot approve their own requests.',
  })

const actorOf = (
  { onBehalfOf }: { readonly onBehalfOf?: string },
  { login }: ApprovalUser,
  { comment, requestId }: ApprovalVote,
): Actor => ({
  requestor: onBehalfOf ?? login,
  ...(onBehalfOf === undefined ? {} : { caller: login }),
  ...(comment === undefined || comment === '' ? {} : { reason: comment }),
  ...(requestId === undefined ? {} : { requestId }),
})

/** Of concurrent decisions one succeeds; the others get CONFLICT. */
async function store(
  approval: Approval,
  standing: { readonly onBehalfOf?: string },
  user: ApprovalUser,
  vote: ApprovalVote,
  { approvals, clock }: DeskParts,
): Promise<Approval> {
  const { id, version } = approval
  const { onBehalfOf } = standing
  const { identity, login } = user
  const { approve, comment } = vote
  const outcome = approve ? 'approved' : 'denied'
  const said = {
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(comment === undefined || comment === '' ? {} : { comment }),
  }
  const signal: ApprovalDecision = { kind: 'approval', approval: id, approved: approve, by: login, ...said }
  try {
    return await approvals.decide({
      approval: id,
      version,
      outcome,
      by: { identity, login },
      ...said,
      signal: { ...signal },
      audit: [approvalRow(approval, actorOf(standing, user, vote), clock(), outcome)],
    })
  } catch (error) {
    if (!(error instanceof GatewayError) || (error.code !== 'CONFLICT' && error.code !== 'VERSION_MISMATCH'))
      throw error
    throw new GatewayError('CONFLICT', `approval ${id} was decided, given to others or ended meanwhile`, {
      cause: error,
      publicText: 'This approval was already decided or is no longer open.',
    })
  }
}

const maxPeriods = 100
const maxPeriodMillis = 366 * 24 * 60 * 60 * 1000

interface DelegationParts {
  readonly delegations: DelegationStore
  readonly finder: ApproverFinder
  readonly clock: Clock
}

/** Names a deputy for a period. Deputies must be in the directory, and can't delegate further. */
async function delegate(
  user: ApprovalUser,
  { deputy, starts, ends }: Omit<DeputyPeriod, 'id' | 'login'>,
  { delegations, finder, clock }: DelegationParts,
): Promise<DeputyPeriod> {
  const now = clock()
  const { identity, login } = user
  if (login === '') throw refused('only people who are known have deputies')
  if (deputy === '' || deputy.length > 500) throw refused('the deputy is not a login')
  if (!(starts < ends) || ends <= now) throw refused('the period ends before it starts, or is over')
  if (ends.getTime() - starts.getTime() > maxPeriodMillis) throw refused('the period is longer than a year')
  const [entry, namesake] = (await finder.byLogin(deputy)).filter(({ attributes }) => !isDeactivated(attributes))
  if (entry === undefined) throw refused(`no active user has the login "${deputy}"`)
  if (namesake !== undefined) throw refused(`several users have the login "${deputy}"`)
  if (entry.identity === identity) throw refused('no one is their own deputy')
  if ((await delegations.listOf(user)).length >= maxPeriods) throw refused('there are too many periods already')
  const period = { id: newId(), login, deputy: entry.attributes.first('uid') ?? deputy, starts, ends }
  const named: UserRef = { identity: entry.identity, login: period.deputy }
  const value = `${period.deputy} from ${starts.toISOString()} to ${ends.toISOString()}`
  await delegations.add({ id: period.id, user: { identity, login }, deputy: named, starts, ends }, [
    delegationRow(period.id, login, now, 'add', value),
  ])
  return period
}

async function endDelegation(user: ApprovalUser, id: string, { delegations, clock }: DelegationParts): Promise<void> {
  const { login } = user
  const [period] = (await delegations.listOf(user)).filter((one) => one.id === id)
  const audit = period && [delegationRow(id, login, clock(), 'delete', period.deputy.login)]
  if (audit === undefined || !(await delegations.remove(user, id, audit))) {
    throw new GatewayError('NOT_FOUND', `"${login}" has no delegation ${id}`)
  }
}

const delegationRow = (
  id: string,
  login: string,
  time: Date,
  action: AuditEntry['action'],
  value: string,
): AuditEntry => ({
  id: newId(),
  time,
  requestor: login,
  subject: login,
  workflow: { id, name: 'delegation' },
  target: ownTarget,
  kind: 'entry',
  action,
  attribute: 'deputy',
  value,
})

const refused = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', `a delegation is refused: ${detail}`, { publicText: `This cannot be: ${detail}.` })

interface EscalatingParts extends OpeningParts {
  readonly approvals: Pick<ApprovalStore, 'get' | 'reassign'>
  readonly audit: Pick<AuditStore, 'append'>
  readonly authority: ApprovalAuthority
  readonly log: Logger
}

/** How soon a timer is retried after a concurrent change of the same approval. */
const againMillis = 1_000

/**
 * Assigns an undecided approval to the approvers of its next escalation. Late or reordered timers never move an
 * approval back. A decided approval stays unchanged.
 */
async function escalate(timer: ClaimedTimer, parts: EscalatingParts): Promise<TimerOutcome> {
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
    // Decided, or its run ended: the timer was deleted with it. Changed in another way: look again later.
    if (code === 'CONFLICT' || code === 'NOT_FOUND') return 'done'
    if (code === 'VERSION_MISMATCH') return { again: { inMillis: againMillis } }
    throw error
  }
}

const note = (approval: Approval, text: string, { audit, clock }: EscalatingParts): Promise<void> =>
  audit.append([approvalRow(approval, byItself, clock(), text)])
