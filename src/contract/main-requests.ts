import type * as schema from './schemas/main-requests.ts'
import type { Wire } from './wire.ts'

/** Approvals, requests and deputies of the Main API. */

export type ApprovalSummary = Wire<typeof schema.approvalSummary>

/** GET approvals?after=&limit=. */
export type ApprovalList = Wire<typeof schema.approvalList>

/** GET approvals/{id}?changes=. Has no secrets. */
export type ApprovalDetails = Wire<typeof schema.approvalDetails>

export type DecisionView = Wire<typeof schema.decisionView>

/** PUT approvals/{id}; answered without a body. */
export interface ApprovalVote {
  readonly approved: boolean | 'true' | 'false'
  readonly reason: string
  /** Rejects the decision if the approval has another version. */
  readonly version?: number
}

/** PUT approvals: one decision about several. */
export interface BulkVote {
  readonly approvals: readonly string[]
  readonly approved: boolean | 'true' | 'false'
  readonly reason: string
}

/** The result by approval; `status` is the status that a single decision would return. */
export type BulkResults = Wire<typeof schema.bulkResults>

export type RunState = Wire<typeof schema.runState>

export type RequestSummary = Wire<typeof schema.requestSummary>

/**
 * GET requests?state=&about=mine|me&after=&limit=: what the caller requested, or what others requested for the
 * caller.
 */
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
 * What approving would do, in order, as far as the preview can show it. Steps after one of the kind `unforeseen`
 * may differ, and steps after an `approval` happen only if that approval is given too. Has no secrets. Times are
 * ISO 8601.
 */
export interface ChangePreview<Time = string> {
  readonly steps: readonly PreviewStep<Time>[]
  /** False if more steps follow than are listed. */
  readonly whole: boolean
}

export type PreviewStep<Time = string> =
  | PreviewEntry
  /** Access that expires: a membership, or the user as a whole. */
  | {
      readonly kind: 'end'
      readonly target: string
      readonly of: 'user' | 'group'
      readonly name: string
      readonly expires: Time
    }
  | { readonly kind: 'mail'; readonly recipient: string; readonly subject: string }
  | { readonly kind: 'approval'; readonly label: string }
  | { readonly kind: 'wait'; readonly until: Time }
  /** `apart`: it starts as a separate request, and the preview does not show what it does. */
  | { readonly kind: 'workflow'; readonly name: string; readonly apart: boolean }
  /** The preview can't show this task. `reason`, for people: why it failed. */
  | { readonly kind: 'unforeseen'; readonly task: string; readonly reason?: string }

/** A user or a group that is created, changed or deleted at a target. */
export interface PreviewEntry {
  readonly kind: 'user' | 'group'
  readonly action: 'create' | 'change' | 'delete'
  readonly target: string
  readonly name: string
  /** The name after the change. */
  readonly newName?: string
  readonly attributes: readonly PreviewAttribute[]
  /** Groups of a user. */
  readonly joins: readonly string[]
  readonly leaves: readonly string[]
  /** There is more than is listed here. */
  readonly cut: boolean
}

/** Secret values are left out. */
export interface PreviewAttribute {
  readonly name: string
  readonly secret: boolean
  readonly before: readonly string[]
  readonly after: readonly string[]
}

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
/** Does not compile if the wire schema differs. */
export const schemaHolds: Same<ChangePreview, Wire<typeof schema.changePreview>> = true
