/** One change that was made to a target, on whose behalf and why. Rows are only ever added. */
export interface AuditRow {
  /** Unique; made by whoever writes the row. */
  readonly id: string
  readonly time: Date
  /** The authenticated caller. */
  readonly requestor: string
  /** The login of the user who was changed. */
  readonly subject: string
  readonly workflow: { readonly id: string; readonly name: string }
  readonly target: string
  readonly kind: 'entry' | 'attribute' | 'group'
  readonly action: 'add' | 'replace' | 'delete'
  readonly attribute: string
  /** Absent for secrets. */
  readonly value?: string
  /** The request that caused it, as in the access log. */
  readonly requestId?: string
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

export interface AuditStore {
  /** All rows or none. Throws CONFLICT when the same rows were written before. */
  append(rows: readonly AuditRow[]): Promise<void>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: AuditQuery): Promise<AuditPage>
}
