import type { ReportCursor, ReportReader, ReportRow, ReportRun } from '#domain/report.ts'

export interface MemoryReportOptions {
  readonly columns?: readonly string[]
  readonly rows?: readonly ReportRow[]
  /** Throws after this many rows. */
  readonly failsAfter?: number
  /** Rows are returned once this resolves. */
  readonly until?: Promise<void>
  /** Closing a cursor waits for this. */
  readonly closing?: () => Promise<void>
}

/** Returns the same rows for every statement, two at a time, with the delays and failures that a test needs. */
export class MemoryReports implements ReportReader {
  readonly runs: ReportRun[] = []
  /** Cursors that are not closed. */
  open = 0
  readonly #options: MemoryReportOptions

  constructor(options: MemoryReportOptions = {}) {
    this.#options = options
  }

  async check(): Promise<void> {}

  async run(run: ReportRun): Promise<ReportCursor> {
    const { columns = [], rows = [], failsAfter = Number.POSITIVE_INFINITY, until, closing } = this.#options
    this.runs.push(run)
    this.open++
    let at = 0
    let closed = false
    return {
      columns,
      next: async () => {
        await until
        if (closed) throw new Error('closed')
        if (at >= failsAfter) throw new Error('the database went away')
        const some = rows.slice(at, Math.min(at + 2, run.limit))
        at += some.length
        return some.length === 0 ? undefined : some
      },
      close: async () => {
        if (!closed) this.open--
        closed = true
        await closing?.()
      },
    }
  }

  async close(): Promise<void> {}
}
