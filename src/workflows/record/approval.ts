import type { Identity, UserRef } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { NewTimer } from '#workflows/timers/timer.ts'

export type ApprovalState = 'open' | 'approved' | 'denied' | 'cancelled'

/** The approver whom an operator chose for a run whose approval found none. */
export interface AppointedApprover {
  readonly approver: UserRef
  readonly by: UserRef
}

/** An entry in a list of approvals. */
export interface ApprovalItem {
  /** Unique, and sorts by creation time. */
  readonly id: string
  /** Read with the run's row: an approval stores nothing of it. */
  readonly run: RunHead
  readonly step: number
  readonly label: string
  readonly state: ApprovalState
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
  /** The requester and the subject may also decide. */
  readonly allowSelf: boolean
  /** The rules that found the approvers. They are checked again at the decision. */
  readonly rules: JsonValue
  /** What approvers see of the request when it was opened: `attributes`, `groups`, `parameters`. Has no secrets. */
  readonly data: JsonObject
  readonly decision?: ApprovalDecision
}

/** An approval that a run waits for; opened in the commit that makes the run wait. */
export interface NewApproval
  extends Omit<Approval, 'run' | 'state' | 'opened' | 'escalation' | 'version' | 'decision'> {
  /** Escalations and reminders. They are deleted with the decision. */
  readonly timers: readonly NewTimer[]
  readonly mails: readonly NewMail[]
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

export interface DecidedPage {
  /** The latest decision first. */
  readonly approvals: readonly (ApprovalItem & { readonly decision: ApprovalDecision })[]
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
