import type { JobHost } from '#sdk/job/job.ts'

interface Reminder {
  /** Approvals that have been open for at least this many days. */
  readonly days: number
  /** No user gets two reminders of the same approval under one key. */
  readonly key: string
  /** `%L` is the approval's label, `%D` the number of days it has been open. Absent: in the language of each approver. */
  readonly message?: string | undefined
  /** The attribute with approvers' addresses, for approvals that name none. */
  readonly mailAttribute: string | undefined
  /** At most this many approvals. */
  readonly limit: number
}

/** What a requester can be mailed about; an `incident` is a request on hold. */
export const mailedOutcomes = ['completed', 'denied', 'expired', 'failed', 'cancelled', 'incident'] as const
export type MailedOutcome = (typeof mailedOutcomes)[number]

export interface OutcomeMails {
  readonly outcomes: readonly MailedOutcome[]
  /** Outcomes from then on. */
  readonly since: Date
  /** Outcomes before then. */
  readonly until: Date
  /** One mail for each requester with all outcomes; no requester gets two of the same key. */
  readonly summary?: string
  readonly mailAttribute: string
  readonly notifier?: string | undefined
  /** At most this many outcomes. */
  readonly limit: number
  readonly signal: AbortSignal
}

/** Which digests are written, and how. */
export interface DigestMails {
  /** Outcomes of requests from then on. */
  readonly since: Date
  /** Outcomes before then; the time of the digest. */
  readonly until: Date
  readonly mailAttribute: string
  /** The attribute with the language of users who chose none. */
  readonly languageAttribute: string
  readonly notifier?: string | undefined
  /** At most this many users. */
  readonly limit: number
  readonly signal: AbortSignal
}

/** How long ended items are stored, in days; absent: forever. */
export interface Retention {
  readonly runs?: number
  readonly mails?: number
  readonly idempotencyKeys?: number
  readonly jobRuns?: number
  /** All records except those of tokens. */
  readonly audit?: AuditRetention
  /** Decisions about tokens. */
  readonly tokens?: AuditRetention
}

/** The first limit that is reached applies. */
export interface AuditRetention {
  readonly days?: number
  /** The most records. */
  readonly records?: number
}

/** Maintenance tasks that jobs can run. Each can be repeated, and run concurrently. */
export interface MaintenanceTasks {
  /** Mails the approvers of approvals that have been open for long, oldest first; returns the number of approvals. */
  remindApprovers(reminder: Reminder): Promise<number>
  /** Mails requesters what became of their requests, each outcome once; returns the number of mails. */
  mailOutcomes(mails: OutcomeMails): Promise<number>
  /** Mails users a digest of what they chose to get so, each entry once; returns the number of mails. */
  mailDigests(mails: DigestMails): Promise<number>
  /** Deletes items after their retention, and expired sessions; returns how many of each. */
  cleanUp(retention: Retention, signal: AbortSignal): Promise<Readonly<Record<string, number>>>
  /** Removes expired access, as happens every few seconds anyway; returns how many grants. */
  revokeExpired(signal: AbortSignal): Promise<number>
}

/** What the jobs of this folder use beside what every job may use. */
export interface MaintenanceHost extends JobHost {
  readonly maintenance: MaintenanceTasks
}
