import type { AuditRow } from '#storage/audit-store.ts'

/** For a time another may decide in one's place. */
export interface Delegation {
  /** Unique; made by whoever adds it. */
  readonly id: string
  readonly login: string
  readonly deputy: string
  readonly starts: Date
  readonly ends: Date
}

/** Logins are compared without regard to letter case. What is changed and its audit are one transaction. */
export interface DelegationStore {
  /** Throws CONFLICT when the id exists, BAD_REQUEST for a period that ends before it starts. */
  add(delegation: Delegation, audit?: readonly AuditRow[]): Promise<void>
  /** False, and nothing is written, when the user has none with this id. */
  remove(login: string, id: string, audit?: readonly AuditRow[]): Promise<boolean>
  /** Those of a user that have not ended, earliest first, at most 100. */
  listOf(login: string): Promise<readonly Delegation[]>
  /** Who may decide for the user now, at most 100. */
  deputiesOf(login: string): Promise<readonly string[]>
  /** Whom the deputy may decide for now, at most 100. */
  representedBy(deputy: string): Promise<readonly string[]>
}
