import type { AccountName } from './difference.ts'

/** What an account has, or should have. */
export interface ComparedEntry {
  readonly login: string
  /** Only those that are compared. */
  readonly attributes: Readonly<Record<string, readonly string[]>>
  /** Only those that are compared. */
  readonly groups: readonly string[]
}

/** A person of the source in scope. */
export interface Person {
  readonly name: AccountName
  /** What the account should have. Undefined if that can't be known, by the problem. */
  readonly wanted: ComparedEntry | undefined
  readonly problem?: string | undefined
}

/** An account of the target. */
export interface Account extends ComparedEntry {
  readonly name: AccountName
  readonly version?: string | undefined
  /** The values that say whether it is deactivated. */
  readonly status: Readonly<Record<string, readonly string[]>>
}
