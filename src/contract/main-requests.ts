import type * as schema from './schemas/main-requests.ts'
import type { Wire } from './wire.ts'

/** Approvals, requests and deputies of the Main API. */

export type ApprovalSummary = Wire<typeof schema.approvalSummary>

/** GET approvals?after=&limit=. */
export type ApprovalList = Wire<typeof schema.approvalList>

/** GET approvals/{id}?changes=. It holds no secrets. */
export type ApprovalDetails = Wire<typeof schema.approvalDetails>

export type DecisionView = Wire<typeof schema.decisionView>

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
export type BulkResults = Wire<typeof schema.bulkResults>

export type RunState = Wire<typeof schema.runState>

export type RequestSummary = Wire<typeof schema.requestSummary>

/** GET requests?state=&about=mine|me&after=&limit=: what the caller asked for, or what was asked for the caller. */
export type RequestList = Wire<typeof schema.requestList>

/** GET requests/{id}. */
export type RequestDetails = Wire<typeof schema.requestDetails>

export type RequestStep = Wire<typeof schema.requestStep>

export type RequestApproval = Wire<typeof schema.requestApproval>

/** POST requests/{id}/cancel; answered by a RequestSummary. */
export interface CancelRequest {
  readonly reason?: string
}

/** GET delegations. */
export type DelegationList = Wire<typeof schema.delegationList>

export type DelegationPeriod = Wire<typeof schema.delegationPeriod>

/** POST delegations; answered with 201 and a DelegationPeriod. */
export interface NewDelegation {
  readonly deputy: string
  readonly starts: string
  readonly ends: string
}
