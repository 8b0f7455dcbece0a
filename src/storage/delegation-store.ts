import type { AuditEntry } from '#domain/audit.ts'
import type { UserRef } from '#identity/identity.ts'

/** For a time another may decide in one's place. */
export interface Delegation {
  /** Unique; made by whoever adds it. */
  readonly id: string
  readonly user: UserRef
  readonly deputy: UserRef
  readonly starts: Date
  readonly ends: Date
}

/** What is changed and its audit are one transaction. */
export interface DelegationStore {
  /** Throws CONFLICT when the id exists, BAD_REQUEST for a period that ends before it starts. */
  add(delegation: Delegation, audit?: readonly AuditEntry[]): Promise<void>
  /** False, and nothing is written, when the user has none with this id. */
  remove(user: UserRef, id: string, audit?: readonly AuditEntry[]): Promise<boolean>
  /** Those of a user that have not ended, earliest first, at most 100. */
  listOf(user: UserRef): Promise<readonly Delegation[]>
  /** Who may decide for the user now, at most 100. */
  deputiesOf(user: UserRef): Promise<readonly UserRef[]>
  /** Whom the deputy may decide for now, at most 100. */
  representedBy(deputy: UserRef): Promise<readonly UserRef[]>
}
