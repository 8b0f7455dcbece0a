/** One change that was made to a target, or one decision about a token or a login: on whose behalf and why. Rows are only ever added. */
export interface AuditRow {
  /** Unique; made by whoever writes the row. */
  readonly id: string
  readonly time: Date
  /** On whose behalf it was made. */
  readonly requestor: string
  /** The authenticated caller, where that is another than the requestor. */
  readonly caller?: string
  /** The login of the user who was changed. */
  readonly subject: string
  readonly workflow: { readonly id: string; readonly name: string }
  readonly target: string
  readonly kind: 'entry' | 'attribute' | 'group' | 'token' | 'session'
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
}

export interface AuditQuery {
  /** All that are given must hold; logins are compared without regard to letter case. */
  readonly requestor?: string
  readonly subject?: string
  readonly workflowId?: string
  readonly target?: string
  readonly requestId?: string
  /** From this time on. */
  readonly from?: Date
  /** Before this time. */
  readonly until?: Date
  /** Continues behind a page: the `next` it came with. */
  readonly after?: string
  /** At most 500 rows come back, whatever is asked. */
  readonly limit: number
}

export interface AuditPage {
  /** Latest first. */
  readonly rows: readonly AuditRow[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

/** Rows that were written together, as they stand in their chain. */
export interface AuditRecord {
  /** Their place in the chain; absent for rows from before there were chains. */
  readonly link?: { readonly chain: number; readonly number: number; readonly hash: string }
  /** In the order in which they were written. */
  readonly rows: readonly AuditRow[]
}

export interface AuditExport {
  /** Oldest first. */
  readonly records: readonly AuditRecord[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

/**
 * `changed`: the record, or the link to the one before it, is not what was written. `removed`: records are missing, this
 * one first. `inserted`: the record was not written by this store.
 */
export interface AuditProblem {
  readonly kind: 'changed' | 'removed' | 'inserted'
  readonly chain?: number
  readonly number?: number
  /** Of the record's first row, where there is a record. */
  readonly id?: string
}

export interface AuditReport {
  /** Records that were checked. */
  readonly checked: number
  /** Records from before there were chains, which nothing can be said of. */
  readonly unchained: number
  /** Empty when everything is as it was written. The first 100, chain by chain. */
  readonly problems: readonly AuditProblem[]
}

/**
 * Rows are only ever added. Each record's hash covers the record and the hash of the one before it in its chain; there
 * are several chains, so that those who append at the same time do not wait for each other.
 */
export interface AuditStore {
  /** All rows or none. Throws CONFLICT when the same rows were written before. */
  append(rows: readonly AuditRow[]): Promise<void>
  /**
   * Appends as part of a transaction of another store, so that a change and its audit are one commit. False, and nothing
   * is written, when the transaction is not one of this database.
   */
  appendWithin(transaction: object, rows: readonly AuditRow[]): Promise<boolean>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: AuditQuery): Promise<AuditPage>
  /** At most 500 records. Throws BAD_REQUEST for an `after` that no page gave. */
  export(query: Pick<AuditQuery, 'from' | 'until' | 'after' | 'limit'>): Promise<AuditExport>
  /** Walks all chains, in bounded memory, while others append. */
  verify(): Promise<AuditReport>
  /** Removes what was written before then, from the beginning of each chain; how many records. */
  prune(before: Date): Promise<number>
}
