import type { Identity } from '#identity/identity.ts'
import type { Approval, OpenApprovalQuery } from '#workflows/record/approval.ts'
import type { Operator } from '#workflows/record/operator.ts'

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
