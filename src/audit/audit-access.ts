import type { AuditReport } from '#audit/store/audit-report.ts'
import type { AuditPage, AuditQuery } from '#sdk/audit/audit-entry.ts'

/** The audit, for administrators. */
export interface AuditAccess {
  /** At most 500 entries. Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  list(query: AuditQuery): Promise<AuditPage>
  /** The latest verification that this process started; undefined before the first. */
  verification(): AuditVerification | undefined
  /** Starts to verify all records in the background. Throws CONFLICT while this process verifies. */
  startVerification(by: string): Promise<AuditVerification>
}

/** A walk over all records. It is known to its process only; the audit records how it ended. */
export interface AuditVerification {
  readonly state: 'running' | 'ended' | 'failed'
  /** The process that verifies. */
  readonly replica: string
  /** The login of the administrator who started it. */
  readonly by: string
  readonly started: Date
  readonly ended?: Date
  /** Records so far. */
  readonly checked: number
  /** Records at the start; others may be written or pruned meanwhile. */
  readonly total: number
  /** Present if it ended. */
  readonly report?: AuditReport
  /** Whether the audit has an entry about the outcome; present if it ended or failed. */
  readonly recorded?: boolean
}
