import {
  type DifferenceKind,
  differenceKinds,
  type PlanState,
  type ReconciliationAction,
  type RowState,
  reconciliationActions,
} from '#features/reconciliation/contract/plan-words.ts'
import type { ComparedCounts, Difference } from '#features/reconciliation/plan/difference.ts'
import type { Identity } from '#identity/identity.ts'

/** What a comparison found so far. */
export interface PlanCounts extends ComparedCounts {
  readonly differences: Readonly<Record<DifferenceKind, number>>
  readonly actions: Readonly<Record<ReconciliationAction, number>>
  /** How many of the changes deactivate an account or take its last compared membership. */
  readonly removes: number
}

const zeros = <K extends string>(keys: readonly K[]): Readonly<Record<K, number>> =>
  Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>

export const noCounts: PlanCounts = {
  source: 0,
  target: 0,
  agree: 0,
  differences: zeros(differenceKinds),
  actions: zeros(reconciliationActions),
  removes: 0,
}

export const differencesIn = ({ differences }: PlanCounts): number =>
  differenceKinds.reduce((sum, kind) => sum + differences[kind], 0)

/** A comparison of the two systems of a reconciliation, and what is done about the differences. */
export interface Plan {
  readonly id: string
  readonly reconciliation: string
  readonly state: PlanState
  /** The time of the schedule that requested it. */
  readonly scheduled?: Date | undefined
  readonly requestedBy: string
  /** A schedule or a change requested it, no person. */
  readonly isAutomatic: boolean
  readonly reason?: string | undefined
  /** Logins of people who changed: only they are compared. Absent: everyone. */
  readonly people?: readonly string[] | undefined
  readonly approval?: PlanApproval | undefined
  readonly counts: PlanCounts
  /** Why it is paused, stopped, failed or expired. */
  readonly problem?: string | undefined
  /** How often it has failed since the last progress. */
  readonly attempt: number
  readonly worker?: string | undefined
  /** When a worker continues it; absent while it waits for a person, and at its end. */
  readonly due?: Date | undefined
  readonly created: Date
  readonly compared?: Date | undefined
  readonly ended?: Date | undefined
  readonly updated: Date
}

/** Who allowed a plan to be applied. */
export interface PlanApproval {
  readonly at: Date
  readonly by: string
  /** Absent for a schedule that applies its plans. */
  readonly identity?: Identity | undefined
  readonly reason?: string | undefined
}

/** The right to work on a plan. Void once the lease has expired and another worker has claimed it, or a person has changed it. */
export interface PlanClaim {
  readonly id: string
  readonly fence: number
}

export interface ClaimedPlan extends Plan, PlanClaim {
  /** Where the comparison continues. */
  readonly resumeAt?: string | undefined
  /** See `ReconciliationConfig`; absent before the first part. */
  readonly definition?: string | undefined
}

/** A difference of a plan, and what became of it. */
export interface PlanRow {
  readonly plan: string
  /** Its place in the plan. */
  readonly number: number
  readonly state: RowState
  readonly difference: Difference
  readonly run?: string | undefined
  /** Why it was skipped, failed, waits or is tried again. */
  readonly reason?: string | undefined
  readonly updated: Date
}

/** Which rows of a plan to read; all given conditions must hold. */
export interface RowQuery {
  readonly state?: RowState | undefined
  readonly kind?: DifferenceKind | undefined
  readonly action?: ReconciliationAction | undefined
  /** The login of a person or an account. Letter case does not count. */
  readonly login?: string | undefined
  /** After this row. */
  readonly after?: number | undefined
  /** At most 500. */
  readonly limit: number
}

/** The outcome of a comparison that read both systems to their end. */
export interface ReconciliationReport extends ComparedCounts, Readonly<Record<DifferenceKind, number>> {
  readonly plan: string
  readonly reconciliation: string
  readonly at: Date
}

/** The last comparison of a reconciliation, and since when its systems differ. */
export interface Drift {
  readonly report: ReconciliationReport
  /** The first of the comparisons since then that found differences; absent if the last one found none. */
  readonly differsSince?: Date | undefined
}

/** A person's decision which account a person of the source has. */
export interface StoredLink {
  readonly reconciliation: string
  /** The id at the source, or the login if the source has no ids. */
  readonly source: string
  /** The same at the target. Absent: the person has no account there. */
  readonly target?: string | undefined
  readonly decided: Date
  readonly decidedBy: string
  readonly reason?: string | undefined
}
