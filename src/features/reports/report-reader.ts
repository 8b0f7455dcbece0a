import type { Closable } from '#kernel/scope.ts'

/** A validated `select` on the report views, and the values that are bound to its parameters. */
export interface ReportQuery {
  /** The texts before, between and after the parameters. */
  readonly parts: readonly string[]
  /** The same for SQLite, if it differs. */
  readonly sqliteParts?: readonly string[]
  readonly values: readonly string[]
}

export interface ReportRun extends ReportQuery {
  /** The maximum number of rows. */
  readonly limit: number
  /** For running the statement and reading its rows. */
  readonly timeoutMillis: number
}

export type ReportRow = readonly (string | null)[]

/** The caller closes it, even if it did not read all rows. */
export interface ReportCursor extends Closable {
  readonly columns: readonly string[]
  /** The next rows, at least one; undefined after the last. Throws TARGET_TIMEOUT after `timeoutMillis`. */
  next(): Promise<readonly ReportRow[] | undefined>
}

export interface ReportReader {
  /** Only prepares the statement. Throws INTERNAL, with the database's message, for an invalid one. */
  check(statement: Omit<ReportQuery, 'values'>): Promise<void>
  /** Resolves with the first rows. Throws INTERNAL when the database rejects the statement or fails. */
  run(run: ReportRun): Promise<ReportCursor>
  close(): Promise<void>
}
