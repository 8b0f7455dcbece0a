import { setImmediate as turn } from 'node:timers/promises'
import type { AuditReport } from '#audit/store/audit-report.ts'
import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import type { AuditPage, AuditQuery } from '#sdk/audit/audit-entry.ts'

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

interface AuditReaderParts {
  /** The name of this process. */
  readonly replica: string
  readonly audit: Pick<AuditStore, 'list' | 'size' | 'verify' | 'record'>
  readonly clock: Clock
  readonly log: Logger
}

/** Reads the audit for administrators, and verifies it in the background: one verification at a time, with a pause after each page. */
export class AuditReader implements Closable {
  readonly #parts: AuditReaderParts
  #latest: AuditVerification | undefined
  #working: Promise<void> | undefined
  #closed = false

  constructor(parts: AuditReaderParts) {
    this.#parts = parts
  }

  /** At most 500 entries. Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  list(query: AuditQuery): Promise<AuditPage> {
    return this.#parts.audit.list(query)
  }

  /** The latest verification that this process started; undefined before the first. */
  verification(): AuditVerification | undefined {
    return this.#latest
  }

  /** Starts to verify all records in the background. Throws CONFLICT while this process verifies. */
  async startVerification(by: string): Promise<AuditVerification> {
    const { tokens, others } = await this.#parts.audit.size()
    if (this.#working !== undefined || this.#closed) {
      throw new GatewayError('CONFLICT', 'the audit is being verified', {
        publicText: 'The audit is being verified already.',
      })
    }
    const { clock, replica } = this.#parts
    const total = tokens + others
    const first = { state: 'running', replica, by, started: clock(), checked: 0, total } as const
    this.#latest = first
    this.#working = this.#verify(first).finally(() => {
      this.#working = undefined
    })
    return first
  }

  /** Stops a verification. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#working
  }

  async #verify(first: AuditVerification): Promise<void> {
    const { audit, clock, log } = this.#parts
    let ended: AuditVerification
    try {
      const report = await audit.verify(async (checked) => {
        this.#latest = { ...first, checked }
        await turn()
        if (this.#closed) throw new Error('the gateway stops')
      })
      ended = { ...first, state: 'ended', checked: report.checked, report, ended: clock() }
    } catch (err) {
      log.error('the audit could not be verified', { err })
      ended = { ...(this.#latest ?? first), state: 'failed', ended: clock() }
    }
    this.#latest = { ...ended, recorded: await this.#record(ended) }
  }

  async #record({ by, report }: AuditVerification): Promise<boolean> {
    const { audit, log } = this.#parts
    const change = { attribute: 'verification', value: outcomeOf(report) }
    try {
      await audit.record({ action: report === undefined ? 'refuse' : 'add', ...change }, by)
      return true
    } catch (err) {
      log.error('the audit has no entry about its verification', { err })
      return false
    }
  }
}

function outcomeOf(report: AuditReport | undefined): string {
  if (report === undefined) return 'stopped before the end'
  const { checked, problems, authenticated } = report
  const found = problems.length === 0 ? 'no problems' : `problems: ${problems.length}`
  return `records: ${checked}, ${found}${authenticated ? '' : ', not authenticated'}`
}
