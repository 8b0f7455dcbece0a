import type { Closable } from '#kernel/scope.ts'

/** A `select` on the views for reports that has been checked, and the values of its places, which are bound. */
export interface ReportQuery {
  /** What stands before, between and behind the places. */
  readonly parts: readonly string[]
  readonly values: readonly string[]
}

export interface ReportRun extends ReportQuery {
  /** Rows that are read at most. */
  readonly limit: number
  /** For the statement, and for whoever reads its rows. */
  readonly timeoutMillis: number
}

export type ReportRow = readonly (string | null)[]

/** Rows as they come, to be closed by whoever opened it, whether or not all of them were read. */
export interface ReportCursor extends Closable {
  readonly columns: readonly string[]
  /** The following rows, at least one; undefined behind the last. TARGET_TIMEOUT when the time is up. */
  next(): Promise<readonly ReportRow[] | undefined>
}

/**
 * Reads for reports, apart from everything else: what a report costs is not taken from those who use the gateway. It sees
 * what is committed, in one snapshot, and can change nothing.
 */
export interface ReportStore {
  /** Runs nothing. INTERNAL, with the database's words in the message, for a statement it does not understand. */
  check(parts: readonly string[]): Promise<void>
  /** Settles when there are first rows, or none. INTERNAL for a statement that the database refuses or fails at. */
  run(run: ReportRun): Promise<ReportCursor>
  close(): Promise<void>
}
