import { readAddress } from '#database/databases.ts'
import type { ReportCursor, ReportQuery, ReportReader, ReportRun } from '#features/reports/report-reader.ts'
import type { Logger } from '#kernel/logger.ts'

/**
 * Runs reports separately from all other work, so that they do not slow down the gateway. A report sees the committed
 * state in one snapshot and cannot change anything. Loads the reader of the database when the first report runs.
 */
export class ReportStore implements ReportReader {
  readonly #load: () => Promise<ReportReader>
  #reader: Promise<ReportReader> | undefined

  /** `ready` resolves when the database is migrated. */
  constructor(url: string, ready: () => Promise<void>, log: Logger) {
    const { dialect, address } = readAddress(url)
    this.#load = async () => {
      if (dialect === 'sqlite') {
        const { SqliteReports } = await import('./sqlite-reports.ts')
        return new SqliteReports(address, ready)
      }
      const { PostgresReports } = await import('./postgres-reports.ts')
      return new PostgresReports(address, ready, log)
    }
  }

  async check(statement: Omit<ReportQuery, 'values'>): Promise<void> {
    await (await this.#open()).check(statement)
  }

  async run(run: ReportRun): Promise<ReportCursor> {
    return await (await this.#open()).run(run)
  }

  async close(): Promise<void> {
    await (await this.#reader)?.close()
  }

  #open(): Promise<ReportReader> {
    this.#reader ??= this.#load()
    return this.#reader
  }
}
