import type { ReportCursor, ReportRow, ReportRun, ReportStore } from '#storage/report-store.ts'

export interface MemoryReportOptions {
  readonly columns?: readonly string[]
  readonly rows?: readonly ReportRow[]
  /** Thrown when this many rows were read. */
  readonly failsAfter?: number
  /** Rows do not come before this settles. */
  readonly until?: Promise<void>
  /** A cursor is closed when this has settled. */
  readonly closing?: () => Promise<void>
}

/** Answers every statement with the same rows, two at a time. */
export class MemoryReports implements ReportStore {
  readonly runs: ReportRun[] = []
  /** Cursors that nobody closed. */
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
