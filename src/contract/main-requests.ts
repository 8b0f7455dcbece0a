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

/**
 * What approving would do, in order, as far as that can be foreseen. Steps after one of the kind `unforeseen` may differ, and
 * steps after an `approval` happen only if it is given too. Has no secrets. Moments are ISO 8601 on the wire.
 */
export interface ForeseenChanges<Moment = string> {
  readonly steps: readonly ForeseenStep<Moment>[]
  /** False if more steps follow than are listed. */
  readonly whole: boolean
}

export type ForeseenStep<Moment = string> =
  | ForeseenEntry
  /** Access that ends by itself: a membership, or the user as a whole. */
  | {
      readonly kind: 'end'
      readonly target: string
      readonly of: 'user' | 'group'
      readonly name: string
      readonly expires: Moment
    }
  | { readonly kind: 'mail'; readonly recipient: string; readonly subject: string }
  | { readonly kind: 'approval'; readonly label: string }
  | { readonly kind: 'wait'; readonly until: Moment }
  /** `apart`: it is started as a request of its own, and what it does is not told. */
  | { readonly kind: 'workflow'; readonly name: string; readonly apart: boolean }
  /** `reason`, for people, where it should have been possible. */
  | { readonly kind: 'unforeseen'; readonly task: string; readonly reason?: string }

/** A user or a group that comes, changes or goes at a target. */
export interface ForeseenEntry {
  readonly kind: 'user' | 'group'
  readonly action: 'create' | 'change' | 'delete'
  readonly target: string
  readonly name: string
  /** Where it is to have another name. */
  readonly newName?: string
  readonly attributes: readonly ForeseenAttribute[]
  /** Groups of a user. */
  readonly joins: readonly string[]
  readonly leaves: readonly string[]
  /** There is more than is listed here. */
  readonly cut: boolean
}

/** Values are left out where they are secret. */
export interface ForeseenAttribute {
  readonly name: string
  readonly secret: boolean
  readonly before: readonly string[]
  readonly after: readonly string[]
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
/** The compiler says here where the schema on the wire differs. */
export const schemaHolds: Same<ForeseenChanges, Wire<typeof schema.foreseenChanges>> = true
