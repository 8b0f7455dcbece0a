import type { AuditStore } from '#audit/store/audit-store.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { MemberDirectory } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import { identitiesOf, isUser, loginIdentity, type UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import type { PortalLinks } from '#mail/mail-links.ts'
import type { MailStore } from '#mail/mail-store.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import type { ApprovalRequest, ApprovalSignal } from '#sdk/workflow/approval-request.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type { Approval, ApprovalItem, ApprovalPage, NewApproval } from '#workflows/record/approval.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import type { TimerHandler } from '#workflows/timers/timer-loop.ts'
import type {
  ApprovalAccess,
  ApprovalView,
  ApprovalVote,
  DeputyPeriod,
  ExistingAccount,
  NewDeputyPeriod,
} from './approval-access.ts'
import { type Actor, approvalRow, ownTarget } from './approval-audit.ts'
import { ApprovalAuthority, type DecisionRight, refsOf } from './approval-authority.ts'
import type { LinksFor } from './approval-links.ts'
import { readPlan } from './approval-plan.ts'
import { ApproverFinder } from './approver-finder.ts'
import { deciderMails } from './approver-mail.ts'
import {
  type Bar,
  barOf,
  involvedIn,
  isInvolvedIn,
  operatorInvolved,
  partiesOf,
  requireUninvolved,
} from './decision-influence.ts'
import { DecisionTimes } from './decision-times.ts'
import { type ApprovalRun, openApproval } from './open-approval.ts'
import { escalate, type ReminderRequest, remind } from './reassign-approvers.ts'
import { findApprover, reassignToUser } from './reassign-to-user.ts'
import { answerApprover, askRequester } from './request-messages.ts'

const maxComment = 2000
/** How many identities the store accepts in one listing, including the caller's own. */
const maxListed = 200
const maxOfRun = 100

/** Approvals of one configuration: who is asked, who may decide, and what happens if no one does. */
export interface ApprovalDesk extends ApprovalAccess {
  /**
   * The part of the commit of the waiting step. Stores nothing. Throws NO_APPROVERS, which is an incident, if no
   * one may decide or the rules match too many users.
   */
  open(request: ApprovalRequest, run: ApprovalRun): Promise<NewApproval>
  /**
   * Mails to the approvers of a run that ended without the approved change. The caller stores them when it ends the
   * run.
   */
  mailsToDeciders(run: string, write: (texts: Texts) => string): Promise<readonly NewMail[]>
  readonly escalate: TimerHandler
  /**
   * Finds the current approvers of approvals that have been open for long, oldest first, assigns the approvals to
   * them and mails them. Returns the number of approvals.
   */
  remind(request: ReminderRequest): Promise<number>
}

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
  readonly rateLimits: RateLimits
  readonly log: Logger
  readonly linksFor?: LinksFor
  /** Pages of the portal. */
  readonly pages?: PortalLinks | undefined
  /** What users chose to be mailed about. */
  readonly choices?: MailChoices
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
  const decisionTimes = new DecisionTimes(approvals, parts.clock)

  const rightOf = (approval: Approval, user: ApprovalUser): Promise<DecisionRight> =>
    authority.rightOf(approval, readPlan(approval.rules), user)

  const get = async (user: ApprovalUser, id: string): Promise<ApprovalView | undefined> => {
    const approval = await approvals.get(id)
    if (approval === undefined) return undefined
    const right = await rightOf(approval, user)
    if (right.kind !== 'none') return approvalView(approval, right)
    const decided = refsOf(user).some((ref) => isUser(approval.decision?.by?.identity, ref))
    return decided ? approvalView(approval, right) : undefined
  }

  /** The approval, if the user may decide it now. Throws NOT_FOUND, ACCESS_DENIED and VERSION_MISMATCH. */
  const mustDecide = async (
    user: ApprovalUser,
    { approval: id, version }: Pick<ApprovalVote, 'approval' | 'version'>,
  ) => {
    const approval = await approvals.get(id)
    const right = approval === undefined ? undefined : await rightOf(approval, user)
    if (approval === undefined || right === undefined || right.kind === 'none') {
      throw new GatewayError('NOT_FOUND', `"${user.login}" has no approval ${id}`)
    }
    if (right.kind === 'barred') throw barred(approval, user, right.bar)
    checkVersion(approval, version)
    return { approval, right }
  }

  return {
    open: (request, run) => openApproval(request, run, all),
    escalate: (timer) => escalate(timer, all),
    remind: (request) => remind(request, all),
    mailsToDeciders: (run, write) => deciderMails(run, write, all),
    get,

    async preview(user, id) {
      const approval = parts.preview === undefined ? undefined : await approvals.get(id)
      if (approval?.state !== 'open') return undefined
      const { kind } = await rightOf(approval, user)
      return kind === 'may' ? await parts.preview?.(approval, user.login) : undefined
    },

    async existing(user, id) {
      const approval = await approvals.get(id)
      if (approval?.state !== 'open' || approval.newAccount !== true) return undefined
      const { kind } = await rightOf(approval, user)
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
        found.approvals.map(async (one) => ((await isHidden(one, own, represented, approvals)) ? [] : [one])),
      )
      return { approvals: shown.flat(), next: found.next }
    },

    decided: (user, page) => approvals.listDecidedBy(refsOf(user).flatMap(identitiesOf).slice(0, maxListed), page),

    async decide(user, vote): Promise<ApprovalView> {
      const { approval, right } = await mustDecide(user, vote)
      checkComment(approval, vote)
      if (vote.approve) checkEnd(approval, parts.clock())
      if (vote.approve && approval.newAccount === true && approval.state === 'open') {
        const refusal = await parts.newAccounts?.refuse(approval, actorOf(right, user, vote))
        if (refusal !== undefined) throw refusal
      }
      const decided = await store(approval, right, user, vote, parts)
      return approvalView(decided, right)
    },

    async reassign(user, handover) {
      const { approval, right } = await mustDecide(user, handover)
      checkLength(handover)
      await reassignToUser(approval, handover.to, actorOf(right, user, handover), all)
    },
    async ask(user, { approval: id, text, requestId }) {
      const { approval, right } = await mustDecide(user, { approval: id })
      const said = { comment: checkText(text), ...(requestId === undefined ? {} : { requestId }) }
      await askRequester(approval, { by: user, text: said.comment, actor: actorOf(right, user, said) }, all)
    },
    async answer(user, { run, text, requestId }) {
      const said = { comment: checkText(text), ...(requestId === undefined ? {} : { requestId }) }
      await answerApprover(run, { by: user, text: said.comment, actor: actorOf({}, user, said) }, all)
    },
    messagesOf: (run) => approvals.messagesOf(run),
    latestMessages: (runs) => approvals.latestMessages(runs),
    decisionMillis: (workflow) => decisionTimes.medianOf(workflow),
    async listOpen({ approver, ...query }) {
      if (approver === undefined) return await approvals.listOpenOf(query)
      const found = (await finder.byLogin(approver)).map(({ identity }) => identity)
      return await approvals.listOpenOf({ ...query, approvers: [...found, loginIdentity(approver)] })
    },
    async assign({ approval: id, version, to, by, reason, requestId }) {
      const approval = await approvals.get(id)
      if (approval === undefined) throw new GatewayError('NOT_FOUND', `no approval ${id}`)
      checkLength({ comment: reason })
      if (barOf(readPlan(approval.rules), by, await finder.entriesOf(by)) === 'involved') throw operatorInvolved(by)
      checkVersion(approval, version)
      const actor = { requestor: by.login, reason, ...(requestId === undefined ? {} : { requestId }) }
      return await reassignToUser(approval, to, actor, all, by)
    },
    async appoint(run, to, by) {
      requireUninvolved(run.head, by)
      const { login, identity } = await findApprover(
        to,
        { involved: involvedIn(run.head), reassignedBy: partiesOf([by]) },
        finder,
      )
      return { approver: { login, identity }, by: { login: by.login, identity: by.identity } }
    },

    delegate: (user, period) => delegate(user, period, all),
    delegations: async (user) =>
      (await delegations.listOf(user)).map(({ user: of, deputy, ...period }) => ({
        ...period,
        login: of.login,
        deputy: deputy.login,
        deputyIdentity: deputy.identity,
      })),
    endDelegation: (user, id) => endDelegation(user, id, all),
    represents: (user) => representedBy(refsOf(user), delegations),
  }
}

const approvalView = (approval: Approval, right: DecisionRight): ApprovalView => ({
  ...approval,
  ...(right.kind === 'may' && right.onBehalfOf !== undefined ? { onBehalfOf: right.onBehalfOf } : {}),
  mayDecide: approval.state === 'open' && right.kind === 'may',
})

async function representedBy(deputy: readonly UserRef[], delegations: DelegationStore): Promise<UserRef[]> {
  const found = await Promise.all(deputy.map((ref) => delegations.representedBy(ref)))
  return [...new Map(found.flat().map((user) => [user.identity, user])).values()]
}

/** Whether it is another user's approval that the caller may not decide as a deputy. */
async function isHidden(
  item: ApprovalItem,
  own: readonly UserRef[],
  represented: readonly UserRef[],
  approvals: ApprovalStore,
): Promise<boolean> {
  // The first version was not reassigned by anyone.
  const isReassigned = item.version > 1 && represented.length > 0
  if (!isReassigned && !own.some((ref) => isInvolvedIn(item.run, ref))) return false
  const approval = await approvals.get(item.id)
  if (approval === undefined) return true
  const plan = readPlan(approval.rules)
  const isOwn = ({ identity }: UserRef): boolean => own.some((ref) => isUser(identity, ref))
  return !approval.approvers.some(isOwn) && own.some((ref) => barOf(plan, ref, []) !== undefined)
}

function checkComment({ id, commentRequired }: Approval, vote: ApprovalVote): void {
  if (commentRequired === true && (vote.comment ?? '').trim() === '') {
    throw new GatewayError('BAD_REQUEST', `approval ${id} needs a comment`, {
      publicText: 'This decision needs a comment.',
    })
  }
  checkLength(vote)
}

function checkVersion({ id, version }: Approval, seen: number | undefined): void {
  if (seen === undefined || seen === version) return
  throw new GatewayError('VERSION_MISMATCH', `approval ${id} has version ${version} by now`)
}

function checkText(text: string): string {
  const said = text.trim()
  checkLength({ comment: said })
  if (said !== '') return said
  throw new GatewayError('BAD_REQUEST', 'an empty message', { publicText: 'Enter a text.' })
}

function checkLength({ comment = '' }: Pick<ApprovalVote, 'comment'>): void {
  if (comment.length <= maxComment) return
  throw new GatewayError('BAD_REQUEST', 'a comment is too long', {
    publicText: `A comment has at most ${maxComment} characters.`,
  })
}

/** Rejects access that would have expired already: the task that grants it would fail. */
function checkEnd({ id, state, run: { accessEnds } }: Approval, now: Date): void {
  if (state !== 'open' || accessEnds === undefined || accessEnds > now) return
  throw new GatewayError('UNPROCESSABLE', `approval ${id} is about access until ${accessEnds.toISOString()}`, {
    publicText: 'The requested expiry date has passed. You can only deny this request.',
  })
}

const barTexts: Readonly<Record<Bar, string>> = {
  involved: 'Requesters and subjects cannot approve their own requests.',
  reassigned: 'You reassigned this approval as an operator, so another user must decide it.',
}

const barred = ({ id }: Approval, { login }: ApprovalUser, bar: Bar): GatewayError =>
  new GatewayError('ACCESS_DENIED', `"${login}" may not decide approval ${id}: ${bar}`, { publicText: barTexts[bar] })

const actorOf = (
  { onBehalfOf }: { readonly onBehalfOf?: string },
  { login }: ApprovalUser,
  { comment, requestId }: Pick<ApprovalVote, 'comment' | 'requestId'>,
): Actor => ({
  requestor: onBehalfOf ?? login,
  ...(onBehalfOf === undefined ? {} : { caller: login }),
  ...(comment === undefined || comment === '' ? {} : { reason: comment }),
  ...(requestId === undefined ? {} : { requestId }),
})

/** Of concurrent decisions one succeeds; the others get CONFLICT. */
async function store(
  approval: Approval,
  right: { readonly onBehalfOf?: string },
  user: ApprovalUser,
  vote: ApprovalVote,
  { approvals, clock }: DeskParts,
): Promise<Approval> {
  const { id, version } = approval
  const { onBehalfOf } = right
  const { identity, login } = user
  const { approve, comment } = vote
  const outcome = approve ? 'approved' : 'denied'
  const said = {
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(comment === undefined || comment === '' ? {} : { comment }),
  }
  const signal: ApprovalSignal = { kind: 'approval', approval: id, approved: approve, by: login, ...said }
  try {
    return await approvals.decide({
      approval: id,
      version,
      outcome,
      by: { identity, login },
      ...said,
      signal: { ...signal },
      audit: [approvalRow(approval, actorOf(right, user, vote), clock(), outcome)],
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
  { deputy, starts, ends }: NewDeputyPeriod,
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
  const named: UserRef = { identity: entry.identity, login: entry.attributes.first('uid') ?? deputy }
  const period = { id: newId(), login, deputy: named.login, deputyIdentity: named.identity, starts, ends }
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
