import type { Logger } from '#kernel/logger.ts'
import { readAddress } from '#storage/client/databases.ts'
import type { ReportCursor, ReportRun, ReportStore } from '#storage/report-store.ts'

/** What a database needs for reports is loaded with the first of them. */
export class SqlReportStore implements ReportStore {
  readonly #load: () => Promise<ReportStore>
  #store: Promise<ReportStore> | undefined

  constructor(url: string, ready: () => Promise<void>, log: Logger) {
    const { dialect, address } = readAddress(url)
    this.#load = async () => {
      if (dialect === 'sqlite') {
        const { SqliteReportStore } = await import('#storage/sql/sqlite-report-store.ts')
        return new SqliteReportStore(address, ready)
      }
      const { PostgresReportStore } = await import('#storage/sql/postgres-report-store.ts')
      return new PostgresReportStore(address, ready, log)
    }
  }

  async check(parts: readonly string[]): Promise<void> {
    await (await this.#opened()).check(parts)
  }

  async run(run: ReportRun): Promise<ReportCursor> {
    return await (await this.#opened()).run(run)
  }

  async close(): Promise<void> {
    await (await this.#store)?.close()
  }

  #opened(): Promise<ReportStore> {
    this.#store ??= this.#load()
    return this.#store
  }
}
