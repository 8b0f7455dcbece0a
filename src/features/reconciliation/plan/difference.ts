import type { DifferenceKind, ReconciliationAction } from '#features/reconciliation/contract/plan-words.ts'

/** An account as plans name it. */
export interface AccountName {
  /** The system's own identifier, if it has one besides the login. */
  readonly id?: string | undefined
  readonly login: string
}

/** The values of one attribute at the target, and those that it should have. Secrets are never compared. */
export interface AttributeDifference {
  readonly name: string
  readonly from: readonly string[]
  readonly to: readonly string[]
}

/** One row of a plan. */
export interface Difference {
  /** Unique within a plan, and the same for the same accounts in every plan. */
  readonly key: string
  readonly kind: DifferenceKind
  readonly action: ReconciliationAction
  /** The person of the source; absent for extra accounts. */
  readonly source?: AccountName | undefined
  /** The account of the target; absent for missing ones. */
  readonly target?: AccountName | undefined
  /** The version of the account when it was read, if its system has versions. */
  readonly targetVersion?: string | undefined
  /** The correlation rule that matched, such as `link` or `mail`. */
  readonly rule?: string | undefined
  /** The accounts, or the persons, between which an ambiguous match can't decide. At most ten. */
  readonly candidates?: readonly AccountName[] | undefined
  readonly attributes: readonly AttributeDifference[]
  readonly groups: { readonly add: readonly string[]; readonly remove: readonly string[] }
  /** The change deactivates the account or takes its last compared membership, so that the limits count it. */
  readonly removes?: true | undefined
  /** One plain sentence for people: why this is a difference, and why nothing is done if nothing is. */
  readonly reason: string
}

/** How many people and accounts a comparison saw. */
export interface ComparedCounts {
  /** People of the source in scope. */
  readonly source: number
  /** Accounts of the target in scope. */
  readonly target: number
  readonly agree: number
}

/** A part of a comparison, from which it can be resumed. */
export interface ComparisonPart {
  readonly differences: readonly Difference[]
  /** Of this part only. */
  readonly counts: ComparedCounts
  /** Where `compare` continues after this part; a JSON text of bounded size. */
  readonly resumeAt: string
}

/** A person's decision that a person of the source has, or must never get, an account of the target. */
export interface AccountLink {
  /** The id of the person at the source, or the login if the source has no ids. */
  readonly source: string
  /** The id of the account, or the login if the target has no ids. Absent: the person has none, so one is created. */
  readonly target?: string | undefined
}
