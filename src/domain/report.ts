import type { Closable } from '#kernel/scope.ts'

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
