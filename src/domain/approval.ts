import type { NewMail } from '#domain/mail.ts'
import type { NewTimer } from '#domain/timer.ts'
import type { RunIdentities, UserRef } from '#identity/identity.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'

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
  /** The rules that found the approvers. They are checked again at the decision. */
  readonly rules: JsonValue
  /** What approvers see. Has no secrets. */
  readonly data: JsonObject
  /** The requested expiry date of the access. */
  readonly accessEnds?: Date
  /** The run may only create accounts. */
  readonly newAccount?: boolean
  /** Escalations and reminders. They are deleted with the decision. */
  readonly timers: readonly NewTimer[]
  readonly mails: readonly NewMail[]
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
  readonly next?: string
}

export interface ApprovalPageQuery {
  /** The `next` of the previous page. */
  readonly after?: string
  /** At most 500. */
  readonly limit: number
}
