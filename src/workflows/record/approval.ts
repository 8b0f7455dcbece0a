import type { Identity, RunIdentities, UserRef } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { NewTimer } from '#workflows/timers/timer.ts'

export type ApprovalState = 'open' | 'approved' | 'denied' | 'cancelled'

/** An approval that a run waits for; opened in the commit that makes the run wait. */
export interface NewApproval {
  /** Unique, and sorts by creation time; chosen by the caller. */
  readonly id: string
  readonly step: number
  readonly label: string
  readonly approvers: readonly UserRef[]
  /** The requester and the subject may also decide. */
  readonly allowSelf: boolean
  /** A decision needs a comment. */
  readonly commentRequired?: boolean
  /** The rules that found the approvers. They are checked again at the decision. */
  readonly rules: JsonValue
  /** What approvers see. Has no secrets. */
  readonly data: JsonObject
  /** The requested expiry date of the access. */
  readonly accessEnds?: Date | undefined
  /** The run may only create accounts. */
  readonly newAccount?: boolean
  /** Escalations and reminders. They are deleted with the decision. */
  readonly timers: readonly NewTimer[]
  readonly mails: readonly NewMail[]
}

/** The approver whom an operator chose for a run whose approval found none. */
export interface AppointedApprover {
  readonly approver: UserRef
  readonly by: UserRef
}

/** An entry in a list of approvals. */
export interface ApprovalItem {
  readonly id: string
  readonly run: string
  /** The name of the workflow. */
  readonly workflow: string
  readonly step: number
  readonly label: string
  readonly state: ApprovalState
  readonly subject: string
  readonly requestor: string
  /** The authenticated caller, if that is not the requester. */
  readonly caller?: string
  readonly who: RunIdentities
  readonly reason?: string
  /** The requested expiry date of the access. */
  readonly accessEnds?: Date
  /** A registration: the submitted values count, even if another user took the login meanwhile. */
  readonly newAccount?: boolean
  /** A decision needs a comment. */
  readonly commentRequired?: boolean
  readonly opened: Date
  /** The number of escalations so far. */
  readonly escalation: number
  /** Changes with every reassignment and with the decision. */
  readonly version: number
}

export interface Approval extends ApprovalItem {
  readonly approvers: readonly UserRef[]
  readonly allowSelf: boolean
  readonly rules: JsonValue
  /** The request when the approval was opened: `attributes`, `groups`, `parameters`. */
  readonly data: JsonObject
  readonly decision?: ApprovalDecision
}

export interface ApprovalDecision {
  readonly at: Date
  /** Absent if a timer decided. */
  readonly by?: UserRef
  /** The approver whose deputy decided. */
  readonly onBehalfOf?: string
  readonly comment?: string
}

export interface ApprovalPage {
  /** Oldest first. */
  readonly approvals: readonly ApprovalItem[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string | undefined
}

/** An approval in a user's history of decisions. */
export interface DecidedApproval extends ApprovalItem {
  readonly decision: ApprovalDecision
}

export interface DecidedPage {
  /** The latest decision first. */
  readonly approvals: readonly DecidedApproval[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}

export interface ApprovalPageQuery {
  /** The `next` of the previous page. */
  readonly after?: string | undefined
  /** At most 500. */
  readonly limit: number
}

/** A page of open approvals of all users. All given conditions must hold. */
export interface OpenApprovalQuery extends ApprovalPageQuery {
  readonly workflow?: string
  /** Only those that one of these identities may decide. */
  readonly approvers?: readonly Identity[]
  /** Only those that were opened before then, or were escalated. */
  readonly overdueSince?: Date
}

/** An open approval with the approvers whom it waits for. */
export interface OpenApproval extends ApprovalItem {
  /** The first logins. */
  readonly approvers: readonly string[]
  /** There are more approvers. */
  readonly hasMore: boolean
}

export interface OpenApprovalPage {
  /** Oldest first. */
  readonly approvals: readonly OpenApproval[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}

/** A question of an approver to the requester, or the answer. */
export interface RequestMessage {
  /** Sorts by time. */
  readonly id: string
  readonly kind: 'question' | 'answer'
  readonly by: UserRef
  readonly at: Date
  readonly text: string
}

/** Where the questions and answers about a run have got to. */
export interface LatestMessage extends Omit<RequestMessage, 'text'> {
  /** Who asked last, and so gets the answer. */
  readonly askedBy: UserRef
}

export type NewRequestMessage = Omit<RequestMessage, 'at'>
