import type { KeyObject } from 'node:crypto'

/**
 * A change that was made to a target, or a decision about a token or a login: on whose behalf and why. Entries are only
 * ever added.
 */
export interface AuditEntry {
  /** Unique; chosen by the writer. */
  readonly id: string
  readonly time: Date
  /** The login on whose behalf it happened. */
  readonly requestor: string
  /** The authenticated caller, where it isn't the requestor. */
  readonly caller?: string
  /** The login of the user who was changed. */
  readonly subject: string
  readonly workflow: { readonly id: string; readonly name: string }
  readonly target: string
  /**
   * `key`: about a signing key, by its kid. `pod`: whether a pod gets tokens. `audit`: about the audit itself, such as that
   * it was pruned.
   */
  readonly kind: 'entry' | 'attribute' | 'group' | 'token' | 'session' | 'key' | 'pod' | 'audit'
  /** A token or a session is issued or refused, and a session deleted; everything else is changed. */
  readonly action: 'add' | 'replace' | 'delete' | 'issue' | 'refuse'
  readonly attribute: string
  /** Absent for secrets. */
  readonly value?: string
  /** The request that caused it, as in the access log. */
  readonly requestId?: string
  /** The approval that allowed it, or that it is about. */
  readonly approval?: string
  readonly reason?: string
  /**
   * How many characters at the start of `reason` are the same in many entries, which a store may keep once. Not set in
   * entries that were read.
   */
  readonly recurring?: number
}

/** The place of a record, by which a receiver recognizes a repetition, and its hash. */
export interface AuditLink {
  readonly chain: number
  readonly number: number
  readonly hash: string
}

/** Entries that were written together. */
export interface AuditRecord {
  readonly link: AuditLink
  /** In the order in which they were written. */
  readonly rows: readonly AuditEntry[]
}

/** The heads of all chains that have records, at one time and signed: to be kept outside the database. */
export interface AuditAnchor {
  /** ISO 8601. */
  readonly time: string
  readonly heads: readonly AuditLink[]
  readonly key: string
  readonly mac: string
}

/** A key of 256 bits that seals the audit, and the id by which a seal names it. */
export interface AuditKey {
  readonly id: string
  readonly key: KeyObject
}

/** Decisions about tokens, or everything else. */
export type AuditPart = 'tokens' | 'others'
