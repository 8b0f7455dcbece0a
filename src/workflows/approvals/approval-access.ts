import type { Identity, UserRef } from '#identity/identity.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type {
  AppointedApprover,
  Approval,
  ApprovalPage,
  ApprovalPageQuery,
  DecidedPage,
  LatestMessage,
  OpenApprovalPage,
  OpenApprovalQuery,
  RequestMessage,
} from '#workflows/record/approval.ts'
import type { ApprovalUser, Operator } from '#workflows/record/operator.ts'
import type { Run } from '#workflows/record/run.ts'

/** An approval as a user who may decide it sees it. */
export interface ApprovalView extends Approval {
  /** The approver for whom the user would decide as a deputy. */
  readonly onBehalfOf?: string
  /** False for users who may not influence it, and if it is no longer open. */
  readonly mayDecide: boolean
}

/** Which values of a registration another user has now. */
export interface ExistingAccount {
  readonly login: boolean
  /** The unique attributes, besides the login, that a user of the directory has with the same value. */
  readonly attributes: readonly string[]
}

/** The decision of an approver. */
export interface ApprovalVote {
  readonly approval: string
  /** Only while the approval has this version; VERSION_MISMATCH otherwise. */
  readonly version?: number | undefined
  readonly approve: boolean
  /** At most 2,000 characters. */
  readonly comment?: string
  /** The HTTP request that decides, as in the access log. */
  readonly requestId?: string
}

/** An approver passes an approval to another user. */
export interface Handover {
  readonly approval: string
  /** The login of the user who is to decide. */
  readonly to: string
  /** Only while the approval has this version; VERSION_MISMATCH otherwise. */
  readonly version?: number | undefined
  /** At most 2,000 characters. */
  readonly comment?: string
  /** The HTTP request, as in the access log. */
  readonly requestId?: string
}

/** What a user says about a request. */
export interface RequestText {
  readonly text: string
  /** The HTTP request, as in the access log. */
  readonly requestId?: string
}

/** A period in which a deputy may decide for a user. A deputy of the deputy may not. */
export interface DeputyPeriod {
  readonly id: string
  readonly login: string
  readonly deputy: string
  readonly deputyIdentity: Identity
  readonly starts: Date
  readonly ends: Date
}

/** The deputy is named by login. */
export type NewDeputyPeriod = Pick<DeputyPeriod, 'deputy' | 'starts' | 'ends'>

/** An open approval of another user, given to one approver. The caller has checked that `by` may do that. */
export interface ApprovalAssignment {
  readonly approval: string
  /** Only while the approval has this version; VERSION_MISMATCH otherwise. */
  readonly version: number
  /** The login of the new approver. */
  readonly to: string
  /** The operator who reassigns it, and may never decide it from then on; the login appears in the audit. */
  readonly by: Operator
  /** At most 2,000 characters. */
  readonly reason: string
  /** The HTTP request, as in the access log. */
  readonly requestId?: string
}

/** Open approvals of all users. An unknown approver has none. */
export interface OpenApprovalFilter extends Omit<OpenApprovalQuery, 'approvers'> {
  /** A login. */
  readonly approver?: string
}

/** What modules may do with approvals, on behalf of the given user. */
export interface ApprovalAccess {
  /** Of one run, oldest first, at most 100. The caller has checked that the user may see them. */
  ofRun(run: string): Promise<readonly Approval[]>
  /** Open ones that the user may decide, also as a deputy. A page may have fewer than `limit`. */
  list(user: ApprovalUser, page: ApprovalPageQuery): Promise<ApprovalPage>
  /** What the user decided, the latest first. Throws BAD_REQUEST for an `after` that is not the `next` of a page. */
  decided(user: ApprovalUser, page: ApprovalPageQuery): Promise<DecidedPage>
  /** Undefined if it does not exist or the user may not see it. */
  get(user: ApprovalUser, id: string): Promise<ApprovalView | undefined>
  /**
   * A preview of the changes if the user approved it now; undefined if the user may not decide it. Throws
   * TOO_MANY_REQUESTS while the user, or all users together, preview too many.
   */
  preview(user: ApprovalUser, id: string): Promise<Preview | undefined>
  /**
   * Whether the account that a registration should create already exists; undefined if the approval isn't for a
   * registration, is not open, or the user may not see it. Throws errors of the directory.
   */
  existing(user: ApprovalUser, id: string): Promise<ExistingAccount | undefined>
  /**
   * Decides, once. Throws NOT_FOUND if the user may not see the approval, ACCESS_DENIED if the user is its
   * requester or subject, CONFLICT if another approver decided first, BAD_REQUEST for a comment that is missing or too long,
   * UNPROCESSABLE for approving access whose expiry date has passed, which can still be denied, and ACCOUNT_EXISTS
   * for approving a registration whose account already exists, which ends the registration.
   */
  decide(user: ApprovalUser, vote: ApprovalVote): Promise<ApprovalView>
  /**
   * Lets only that user decide, until the approval escalates. Throws NOT_FOUND and ACCESS_DENIED as `decide` does,
   * BAD_REQUEST if the user does not exist or is the requester or the subject, CONFLICT if the approval is not open.
   */
  reassign(user: ApprovalUser, handover: Handover): Promise<void>
  /**
   * Asks the requester. Throws as `reassign` does, and BAD_REQUEST for a text that is empty or longer than 2,000
   * characters.
   */
  ask(user: ApprovalUser, question: RequestText & { readonly approval: string }): Promise<void>
  /**
   * Answers the last question. The caller has checked that the user requested the run. Throws CONFLICT if no one waits for
   * an answer, BAD_REQUEST as `ask` does.
   */
  answer(user: ApprovalUser, answer: RequestText & { readonly run: string }): Promise<void>
  /** Questions and answers about a run, in order. The caller has checked that the user may see them. */
  messagesOf(run: string): Promise<readonly RequestMessage[]>
  /** Of each of these runs that has questions, the last message. The caller has checked that the user may see them. */
  latestMessages(runs: readonly string[]): Promise<ReadonlyMap<string, LatestMessage>>
  /** The median time from opening to decision of the workflow's latest approvals; undefined if there are too few. */
  decisionMillis(workflow: string): Promise<number | undefined>
  /** Open ones of all users. The caller has checked that the user may see them. */
  listOpen(filter: OpenApprovalFilter): Promise<OpenApprovalPage>
  /**
   * As `reassign`, by an operator. Throws NOT_FOUND if there is none, ACCESS_DENIED for its requester, caller and subject,
   * and VERSION_MISMATCH.
   */
  assign(assignment: ApprovalAssignment): Promise<Approval>
  /**
   * The user with that login as the approver of a run whose approval found none; see `RunAccess.retry`. Throws
   * ACCESS_DENIED for requester, caller and subject of the run, BAD_REQUEST as `reassign` does. Stores nothing.
   */
  appoint(run: Run, to: string, by: Operator): Promise<AppointedApprover>
  /** The user is out of office. BAD_REQUEST for an invalid period or deputy. */
  delegate(user: ApprovalUser, period: NewDeputyPeriod): Promise<DeputyPeriod>
  /** The user's own periods that have not ended, at most 100. */
  delegations(user: ApprovalUser): Promise<readonly DeputyPeriod[]>
  /** Throws NOT_FOUND if the user has none with that id. */
  endDelegation(user: ApprovalUser, id: string): Promise<void>
  /** The users for whom the user may decide now. */
  represents(user: ApprovalUser): Promise<readonly UserRef[]>
}
