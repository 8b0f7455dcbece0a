import type { AttributeValues } from './main.ts'
import type { ForeseenChanges } from './main-changes.ts'

/** Approvals, requests and deputies of the Main API. */

export interface ApprovalSummary {
  /** The request. */
  readonly workflow: string
  readonly approval: string
  readonly label: string
  /** The subject's login. */
  readonly user: string
  readonly displayName: string
  readonly requestor: string
  /** Who submitted it in the requester's name; absent where the requester did. */
  readonly caller?: string
  readonly wfStart: number
  readonly approvalStart: number
  readonly wfName: string
  readonly wfLabel: string
  readonly wfDescription: string
  readonly reason: string
  /** When the access is to end, where the requester chose that. */
  readonly accessEnds?: string
}

/** GET approvals?after=&limit=. */
export interface ApprovalList {
  /** Oldest first. */
  readonly approvals: readonly ApprovalSummary[]
  /** The `after` of the following page; absent on the last one. */
  readonly next?: string
}

/** GET approvals/{id}?changes=. It holds no secrets. */
export interface ApprovalDetails extends ApprovalSummary {
  readonly userObj: {
    readonly userID: string
    /** A registration, or a user whom the directory does not have: the values are those of the request. */
    readonly isNew: boolean
    readonly groups: readonly string[]
    readonly requestReason: string
    /** By label. */
    readonly attribs: Readonly<Record<string, AttributeValues>>
  }
  /** A registration: it creates an account. The values are those submitted, even if another user has the login by now. */
  readonly registration?: true
  /**
   * Of an open registration: whether another user has the login, or the value of a unique attribute, now. Approving it is then
   * refused with 409. `checked` is false where that could not be found out.
   */
  readonly existing?: { readonly checked: boolean; readonly login: boolean; readonly attributes: readonly string[] }
  /** By label. */
  readonly requestAttributes: Readonly<Record<string, string>>
  readonly status: 'open' | 'approved' | 'denied' | 'cancelled'
  readonly approvers: readonly string[]
  /** For whom the one who asks would decide. */
  readonly onBehalfOf?: string
  readonly mayDecide: boolean
  readonly version: number
  readonly decision?: DecisionView
  /** What approving it now would do: with `changes=true`, to whoever may decide, where the portal shows it. */
  readonly changes?: ForeseenChanges
}

export interface DecisionView {
  readonly at: string
  readonly by?: string
  readonly onBehalfOf?: string
  readonly comment?: string
}

/** PUT approvals/{id}; answered without a body. */
export interface ApprovalVote {
  readonly approved: boolean | 'true' | 'false'
  readonly reason: string
  /** Only while the approval has this version. */
  readonly version?: number
}

/** PUT approvals: one decision about several. */
export interface BulkVote {
  readonly approvals: readonly string[]
  readonly approved: boolean | 'true' | 'false'
  readonly reason: string
}

/** By approval: how it went; `status` is what deciding it alone would have answered. */
export interface BulkResults {
  readonly results: Readonly<Record<string, { readonly status: number; readonly text: string; readonly code?: string }>>
}

export type RequestState = 'ready' | 'running' | 'waiting' | 'incident' | 'completed' | 'failed' | 'cancelled'

export interface RequestSummary {
  readonly id: string
  readonly name: string
  readonly label: string
  readonly state: RequestState
  readonly subject: string
  readonly requestor: string
  /** Who submitted it in the requester's name; absent where the requester did. */
  readonly caller?: string
  readonly reason?: string
  readonly created: string
  readonly updated: string
  readonly ended?: string
  readonly deadline?: string
  /** When the access is to end, where the requester chose that. */
  readonly accessEnds?: string
  /** Who asked for its end, and why. */
  readonly cancel?: { readonly by: string; readonly reason?: string }
}

/** GET requests?state=&about=mine|me&after=&limit=: what the caller asked for, or what was asked for the caller. */
export interface RequestList {
  /** Latest first. */
  readonly requests: readonly RequestSummary[]
  readonly next?: string
}

/** GET requests/{id}. */
export interface RequestDetails extends RequestSummary {
  /** By the one who asks, as it stands. */
  readonly mayCancel: boolean
  readonly failure?: { readonly code: string; readonly text: string }
  readonly timeline: readonly RequestStep[]
  readonly approvals: readonly RequestApproval[]
}

export interface RequestStep {
  readonly id: number
  readonly taskType: string
  readonly label?: string
  readonly attempt: number
  readonly started: string
  readonly ended: string
  readonly outcome: string
}

export interface RequestApproval {
  readonly id: string
  readonly label: string
  readonly status: 'open' | 'approved' | 'denied' | 'cancelled'
  readonly opened: string
  readonly escalation: number
  readonly approvers: readonly string[]
  readonly decision?: DecisionView
}

/** POST requests/{id}/cancel; answered by a RequestSummary. */
export interface CancelRequest {
  readonly reason?: string
}

/** GET delegations. */
export interface DelegationList {
  readonly delegations: readonly DelegationPeriod[]
  /** For whom the caller may decide now. */
  readonly represents: readonly string[]
}

export interface DelegationPeriod {
  readonly id: string
  readonly deputy: string
  readonly starts: string
  readonly ends: string
}

/** POST delegations; answered with 201 and a DelegationPeriod. */
export interface NewDelegation {
  readonly deputy: string
  readonly starts: string
  readonly ends: string
}
