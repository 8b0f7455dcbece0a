import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { readAddress } from '#storage/client/databases.ts'

/** A checked `select` on the report views, and the values of its places, which are bound. */
export interface ReportQuery {
  /** The texts before, between and after the places. */
  readonly parts: readonly string[]
  readonly values: readonly string[]
}

export interface ReportRun extends ReportQuery {
  /** How many rows are read at most. */
  readonly limit: number
  /** For running the statement and reading its rows. */
  readonly timeoutMillis: number
}

export type ReportRow = readonly (string | null)[]

/** The caller closes it, whether or not it has read all rows. */
export interface ReportCursor extends Closable {
  readonly columns: readonly string[]
  /** The next rows, at least one; undefined after the last. Throws TARGET_TIMEOUT after `timeoutMillis`. */
  next(): Promise<readonly ReportRow[] | undefined>
}

export interface ReportReader {
  /** Runs nothing. Throws INTERNAL, with the database's message, for an invalid statement. */
  check(parts: readonly string[]): Promise<void>
  /** Resolves with the first rows. Throws INTERNAL when the database rejects the statement or fails. */
  run(run: ReportRun): Promise<ReportCursor>
  close(): Promise<void>
}

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
        const { SqliteReports } = await import('#storage/reports/sqlite-reports.ts')
        return new SqliteReports(address, ready)
      }
      const { PostgresReports } = await import('#storage/reports/postgres-reports.ts')
      return new PostgresReports(address, ready, log)
    }
  }

  async check(parts: readonly string[]): Promise<void> {
    await (await this.#open()).check(parts)
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
