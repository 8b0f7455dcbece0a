import type { AuditStore } from '#audit/store/audit-store.ts'
import type { MemberDirectory } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import { identitiesOf, isUser, loginIdentity, type UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import type { PortalLinks } from '#mail/mail-links.ts'
import type { MailStore } from '#mail/mail-store.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import type { ApprovalRequest, ApprovalSignal } from '#sdk/workflow/approval-request.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type {
  AppointedApprover,
  Approval,
  ApprovalItem,
  ApprovalPage,
  ApprovalPageQuery,
  DecidedPage,
  LatestMessage,
  NewApproval,
  OpenApprovalPage,
  RequestMessage,
} from '#workflows/record/approval.ts'
import type { ApprovalUser, Operator } from '#workflows/record/operator.ts'
import type { Run } from '#workflows/record/run.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import type { ClaimedTimer } from '#workflows/timers/timer.ts'
import type { TimerOutcome } from '#workflows/timers/timer-loop.ts'
import { type Actor, approvalRow } from './approval-audit.ts'
import type { LinksFor } from './approval-links.ts'
import { deciderMails } from './approver-mail.ts'
import { ApprovalAuthority, ApproverFinder, type DecisionRight, readPlan, refsOf } from './approvers.ts'
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
import { delegate, endDelegation, periodsOf, representedBy } from './deputies.ts'
import type {
  ApprovalAssignment,
  ApprovalView,
  ApprovalVote,
  DeputyPeriod,
  ExistingAccount,
  Handover,
  NewDeputyPeriod,
  OpenApprovalFilter,
  RequestText,
} from './desk-requests.ts'
import { type ApprovalRun, openApproval } from './open-approval.ts'
import { escalate, type ReminderRequest, remind } from './reassign-approvers.ts'
import { findApprover, reassignToUser } from './reassign-to-user.ts'
import { answerApprover, askRequester } from './request-messages.ts'

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

/**
 * Approvals of one configuration: who is asked, who may decide, and what happens if no one does. What other parts do is on
 * behalf of the given user.
 */
export class ApprovalDesk {
  readonly #parts: DeskParts & { readonly finder: ApproverFinder; readonly authority: ApprovalAuthority }
  readonly #decisionTimes: DecisionTimes

  constructor(parts: DeskParts) {
    const finder = new ApproverFinder(parts)
    this.#parts = { ...parts, finder, authority: new ApprovalAuthority({ ...parts, finder }) }
    this.#decisionTimes = new DecisionTimes(parts.approvals, parts.clock)
  }

  /**
   * The part of the commit of the waiting step. Stores nothing. Throws NO_APPROVERS, which is an incident, if no
   * one may decide or the rules match too many users.
   */
  open(request: ApprovalRequest, run: ApprovalRun): Promise<NewApproval> {
    return openApproval(request, run, this.#parts)
  }

  escalate(timer: ClaimedTimer): Promise<TimerOutcome> {
    return escalate(timer, this.#parts)
  }

  /**
   * Finds the current approvers of approvals that have been open for long, oldest first, assigns the approvals to
   * them and mails them. Returns the number of approvals.
   */
  remind(request: ReminderRequest): Promise<number> {
    return remind(request, this.#parts)
  }

  /**
   * Mails to the approvers of a run that ended without the approved change. The caller stores them when it ends the
   * run.
   */
  mailsToDeciders(run: string, write: (texts: Texts) => string): Promise<readonly NewMail[]> {
    return deciderMails(run, write, this.#parts)
  }

  /** Undefined if it does not exist or the user may not see it. */
  async get(user: ApprovalUser, id: string): Promise<ApprovalView | undefined> {
    const approval = await this.#parts.approvals.get(id)
    if (approval === undefined) return undefined
    const right = await this.#rightOf(approval, user)
    if (right.kind !== 'none') return approvalView(approval, right)
    const decided = refsOf(user).some((ref) => isUser(approval.decision?.by?.identity, ref))
    return decided ? approvalView(approval, right) : undefined
  }

  /**
   * A preview of the changes if the user approved it now; undefined if the user may not decide it. Throws
   * TOO_MANY_REQUESTS while the user, or all users together, preview too many.
   */
  async preview(user: ApprovalUser, id: string): Promise<Preview | undefined> {
    const { approvals, preview } = this.#parts
    const approval = preview === undefined ? undefined : await approvals.get(id)
    if (approval?.state !== 'open') return undefined
    const { kind } = await this.#rightOf(approval, user)
    return kind === 'may' ? await preview?.(approval, user.login) : undefined
  }

  /**
   * Whether the account that a registration should create already exists; undefined if the approval isn't for a
   * registration, is not open, or the user may not see it. Throws errors of the directory.
   */
  async existing(user: ApprovalUser, id: string): Promise<ExistingAccount | undefined> {
    const { approvals, newAccounts } = this.#parts
    const approval = await approvals.get(id)
    if (approval?.state !== 'open' || approval.newAccount !== true) return undefined
    const { kind } = await this.#rightOf(approval, user)
    return kind === 'none' ? undefined : await newAccounts?.existing(approval)
  }

  /** Of one run, oldest first, at most 100. The caller has checked that the user may see them. */
  async ofRun(run: string): Promise<Approval[]> {
    const { approvals } = this.#parts
    const found = await approvals.listOfRun(run)
    const whole = await Promise.all(found.slice(0, maxOfRun).map(({ id }) => approvals.get(id)))
    return whole.filter((approval) => approval !== undefined)
  }

  /** Open ones that the user may decide, also as a deputy. A page may have fewer than `limit`. */
  async list(user: ApprovalUser, page: ApprovalPageQuery): Promise<ApprovalPage> {
    const { approvals } = this.#parts
    const own = refsOf(user)
    const represented = await this.represents(user)
    const keys = [...own, ...represented].flatMap(identitiesOf)
    const found = await approvals.listForApprovers(keys.slice(0, maxListed), page)
    const shown = await Promise.all(
      found.approvals.map(async (one) => ((await isHidden(one, own, represented, approvals)) ? [] : [one])),
    )
    return { approvals: shown.flat(), next: found.next }
  }

  /** What the user decided, the latest first. Throws BAD_REQUEST for an `after` that is not the `next` of a page. */
  decided(user: ApprovalUser, page: ApprovalPageQuery): Promise<DecidedPage> {
    return this.#parts.approvals.listDecidedBy(refsOf(user).flatMap(identitiesOf).slice(0, maxListed), page)
  }

  /**
   * Decides, once. Throws NOT_FOUND if the user may not see the approval, ACCESS_DENIED if the user is its
   * requester or subject, CONFLICT if another approver decided first, BAD_REQUEST for a comment that is missing or too long,
   * UNPROCESSABLE for approving access whose expiry date has passed, which can still be denied, and ACCOUNT_EXISTS
   * for approving a registration whose account already exists, which ends the registration.
   */
  async decide(user: ApprovalUser, vote: ApprovalVote): Promise<ApprovalView> {
    const { approval, right } = await this.#mustDecide(user, vote)
    checkComment(approval, vote)
    if (vote.approve) checkEnd(approval, this.#parts.clock())
    if (vote.approve && approval.newAccount === true && approval.state === 'open') {
      const refusal = await this.#parts.newAccounts?.refuse(approval, actorOf(right, user, vote))
      if (refusal !== undefined) throw refusal
    }
    const decided = await store(approval, right, user, vote, this.#parts)
    return approvalView(decided, right)
  }

  /**
   * Lets only that user decide, until the approval escalates. Throws NOT_FOUND and ACCESS_DENIED as `decide` does,
   * BAD_REQUEST if the user does not exist or is the requester or the subject, CONFLICT if the approval is not open.
   */
  async reassign(user: ApprovalUser, handover: Handover): Promise<void> {
    const { approval, right } = await this.#mustDecide(user, handover)
    checkLength(handover)
    await reassignToUser(approval, handover.to, actorOf(right, user, handover), this.#parts)
  }

  /**
   * Asks the requester. Throws as `reassign` does, and BAD_REQUEST for a text that is empty or longer than 2,000
   * characters.
   */
  async ask(user: ApprovalUser, question: RequestText & { readonly approval: string }): Promise<void> {
    const { approval, right } = await this.#mustDecide(user, { approval: question.approval })
    const text = checkText(question.text)
    const actor = actorOf(right, user, { comment: text, requestId: question.requestId })
    await askRequester(approval, { by: user, text, actor }, this.#parts)
  }

  /**
   * Answers the last question. The caller has checked that the user requested the run. Throws CONFLICT if no one waits for
   * an answer, BAD_REQUEST as `ask` does.
   */
  async answer(user: ApprovalUser, answer: RequestText & { readonly run: string }): Promise<void> {
    const text = checkText(answer.text)
    const actor = actorOf({}, user, { comment: text, requestId: answer.requestId })
    await answerApprover(answer.run, { by: user, text, actor }, this.#parts)
  }

  /** Questions and answers about a run, in order. The caller has checked that the user may see them. */
  messagesOf(run: string): Promise<readonly RequestMessage[]> {
    return this.#parts.approvals.messagesOf(run)
  }

  /** Of each of these runs that has questions, the last message. The caller has checked that the user may see them. */
  latestMessages(runs: readonly string[]): Promise<ReadonlyMap<string, LatestMessage>> {
    return this.#parts.approvals.latestMessages(runs)
  }

  /** The median time from opening to decision of the workflow's latest approvals; undefined if there are too few. */
  decisionMillis(workflow: string): Promise<number | undefined> {
    return this.#decisionTimes.medianOf(workflow)
  }

  /** Open ones of all users. The caller has checked that the user may see them. */
  async listOpen({ approver, ...query }: OpenApprovalFilter): Promise<OpenApprovalPage> {
    const { approvals, finder } = this.#parts
    if (approver === undefined) return await approvals.listOpenOf(query)
    const found = (await finder.byLogin(approver)).map(({ identity }) => identity)
    return await approvals.listOpenOf({ ...query, approvers: [...found, loginIdentity(approver)] })
  }

  /**
   * As `reassign`, by an operator. Throws NOT_FOUND if there is none, ACCESS_DENIED for its requester, caller and subject,
   * and VERSION_MISMATCH.
   */
  async assign({ approval: id, version, to, by, reason, requestId }: ApprovalAssignment): Promise<Approval> {
    const { approvals, finder } = this.#parts
    const approval = await approvals.get(id)
    if (approval === undefined) throw new GatewayError('NOT_FOUND', `no approval ${id}`)
    checkLength({ comment: reason })
    if (barOf(readPlan(approval.rules), by, await finder.entriesOf(by)) === 'involved') throw operatorInvolved(by)
    checkVersion(approval, version)
    return await reassignToUser(approval, to, { requester: by.login, reason, requestId }, this.#parts, by)
  }

  /**
   * The user with that login as the approver of a run whose approval found none; see `RunService.retry`. Throws
   * ACCESS_DENIED for requester, caller and subject of the run, BAD_REQUEST as `reassign` does. Stores nothing.
   */
  async appoint(run: Run, to: string, by: Operator): Promise<AppointedApprover> {
    requireUninvolved(run.head, by)
    const { login, identity } = await findApprover(
      to,
      { involved: involvedIn(run.head), reassignedBy: partiesOf([by]) },
      this.#parts.finder,
    )
    return { approver: { login, identity }, by: { login: by.login, identity: by.identity } }
  }

  /** The user is out of office. BAD_REQUEST for an invalid period or deputy. */
  delegate(user: ApprovalUser, period: NewDeputyPeriod): Promise<DeputyPeriod> {
    return delegate(user, period, this.#parts)
  }

  /** The user's own periods that have not ended, at most 100. */
  delegations(user: ApprovalUser): Promise<readonly DeputyPeriod[]> {
    return periodsOf(user, this.#parts.delegations)
  }

  /** Throws NOT_FOUND if the user has none with that id. */
  endDelegation(user: ApprovalUser, id: string): Promise<void> {
    return endDelegation(user, id, this.#parts)
  }

  /** The users for whom the user may decide now. */
  represents(user: ApprovalUser): Promise<readonly UserRef[]> {
    return representedBy(refsOf(user), this.#parts.delegations)
  }

  #rightOf(approval: Approval, user: ApprovalUser): Promise<DecisionRight> {
    return this.#parts.authority.rightOf(approval, readPlan(approval.rules), user)
  }

  /** The approval, if the user may decide it now. Throws NOT_FOUND, ACCESS_DENIED and VERSION_MISMATCH. */
  async #mustDecide(user: ApprovalUser, { approval: id, version }: Pick<ApprovalVote, 'approval' | 'version'>) {
    const approval = await this.#parts.approvals.get(id)
    const right = approval === undefined ? undefined : await this.#rightOf(approval, user)
    if (approval === undefined || right === undefined || right.kind === 'none') {
      throw new GatewayError('NOT_FOUND', `"${user.login}" has no approval ${id}`)
    }
    if (right.kind === 'barred') throw barred(approval, user, right.bar)
    checkVersion(approval, version)
    return { approval, right }
  }
}

const approvalView = (approval: Approval, right: DecisionRight): ApprovalView => ({
  ...approval,
  ...(right.kind === 'may' && right.onBehalfOf !== undefined ? { onBehalfOf: right.onBehalfOf } : {}),
  mayDecide: approval.state === 'open' && right.kind === 'may',
})

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
  { comment, requestId }: { readonly comment?: string | undefined; readonly requestId?: string | undefined },
): Actor => ({
  requester: onBehalfOf ?? login,
  caller: onBehalfOf === undefined ? undefined : login,
  reason: comment === '' ? undefined : comment,
  requestId,
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
