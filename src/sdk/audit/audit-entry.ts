import type { AuditLink } from '#kernel/audit-link.ts'

/**
 * A change to a target, or a decision about a token or a login, with the requester and the reason. Entries are
 * never changed.
 */
export interface AuditEntry {
  /** Unique; chosen by the writer. */
  readonly id: string
  readonly time: Date
  /** The login of the requester. */
  readonly requestor: string
  /** The authenticated caller, if that is not the requester. */
  readonly caller?: string | undefined
  /** The login of the user who was changed. */
  readonly subject: string
  readonly workflow: { readonly id: string; readonly name: string }
  readonly target: string
  /**
   * `key`: a signing key, by its kid. `pod`: whether a pod gets tokens. `audit`: the audit itself, such as pruning
   * it.
   */
  readonly kind: 'entry' | 'attribute' | 'group' | 'token' | 'session' | 'key' | 'pod' | 'audit'
  /** Tokens and sessions are issued or refused, and sessions deleted; everything else is changed. */
  readonly action: 'add' | 'replace' | 'delete' | 'issue' | 'refuse'
  readonly attribute: string
  /** Absent for secrets. */
  readonly value?: string
  /** The request that caused it, as in the access log. */
  readonly requestId?: string | undefined
  /** The approval that allowed it, or that the entry is about. */
  readonly approval?: string | undefined
  readonly reason?: string | undefined
  /**
   * How many characters at the start of `reason` many entries share; a store may keep them once. Not set in entries
   * read from a store.
   */
  readonly recurring?: number
}

/** Entries that were written together. */
export interface AuditRecord {
  readonly link: AuditLink
  /** In the order in which they were written. */
  readonly rows: readonly AuditEntry[]
}

/** Decisions about tokens, or everything else. */
export type AuditPart = 'tokens' | 'others'

/** Which entries to read; all given conditions must hold. */
export interface AuditQuery {
  /** Logins are compared without regard to letter case. */
  readonly requestor?: string
  readonly subject?: string
  readonly workflowId?: string
  readonly target?: string
  readonly requestId?: string
  /** From this time on. */
  readonly from?: Date
  /** Before this time. */
  readonly until?: Date
  /** The `next` of the previous page. */
  readonly after?: string
  /** At most 500. */
  readonly limit: number
}

/** One page of entries. */
export interface AuditPage {
  /** Latest first. */
  readonly rows: readonly AuditEntry[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}
