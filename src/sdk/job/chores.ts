export interface Reminder {
  /** Approvals that have been open for at least so many days. */
  readonly days: number
  /** Nobody is reminded of the same approval twice under one key. */
  readonly key: string
  /** `%L` is the approval's label, `%D` the number of days it has been open. */
  readonly message: string
  /** The attribute that holds approvers' addresses, for approvals that name none. */
  readonly mailAttribute: string | undefined
  /** At most this many approvals. */
  readonly limit: number
}

/** How long what has ended is kept, in days; absent: for ever. */
export interface Retention {
  readonly runs?: number
  readonly mails?: number
  readonly idempotencyKeys?: number
  readonly jobRuns?: number
  /** All records but those of tokens. */
  readonly audit?: AuditRetention
  /** Decisions about tokens. */
  readonly tokens?: AuditRetention
}

/** Whichever ends first. */
export interface AuditRetention {
  readonly days?: number
  /** The most records. */
  readonly records?: number
}

/** What jobs can do for the installation. Each may be done again, and by several at a time. */
export interface Chores {
  /** Mails to the approvers of what has been open for long, oldest first; how many approvals they were reminded of. */
  remindApprovers(reminder: Reminder): Promise<number>
  /** Forgets what has been kept long enough, and sessions that have expired; how much of each. */
  cleanUp(retention: Retention, signal: AbortSignal): Promise<Readonly<Record<string, number>>>
  /** Takes back access whose time has passed, as is done every few seconds anyway; how many grants. */
  revokeExpired(signal: AbortSignal): Promise<number>
}
