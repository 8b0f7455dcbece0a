import { raw, Sql } from 'sql-template-tag'

export type SqlDialect = 'sqlite' | 'postgres'
export type SqlValue = string | number | bigint | null

/** Our own database, or that of a target, whose schema and accounts are not ours. */
export type Owner = 'own' | 'foreign'

/** Columns by name. Every statement of ours reads its columns as text. */
export type SqlRow = Readonly<Record<string, unknown>>

/** A statement and its values, always separate. */
export interface SqlStatement {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** The statement in the form of the dialect: `?` for each value in SQLite, `$1` in PostgreSQL. */
export function compileSql(statement: Sql | SqlStatement, dialect: SqlDialect): SqlStatement {
  if (!(statement instanceof Sql)) return statement
  return { sql: dialect === 'postgres' ? statement.text : statement.sql, params: statement.values as SqlValue[] }
}

/** A name from the configuration, quoted: `"table"`, or `"schema"."table"` for several parts. */
export const identifier = (...parts: readonly string[]): Sql =>
  raw(parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.'))

export interface SqlReader {
  readonly dialect: SqlDialect
  /** One statement is one snapshot. */
  query(statement: Sql | SqlStatement): Promise<readonly SqlRow[]>
}

/** Sees its own writes. Unusable once the transaction's function has returned. */
export interface SqlTransaction extends SqlReader {
  /** How many rows were changed. */
  run(statement: Sql | SqlStatement): Promise<number>
}

/**
 * The database of a target. Failures are GatewayErrors: CONFLICT for a uniqueness rule, BAD_REQUEST for a value
 * that a column can't store, TARGET_UNREACHABLE if it does not answer, is locked, full or read-only, TARGET_TIMEOUT
 * if a statement takes too long, and TARGET_FAILED for every other error.
 */
export interface SqlDatabase extends SqlReader {
  /**
   * One statement that is not ours: its functions leave nothing in the connection, and on PostgreSQL they can't write.
   * BAD_REQUEST if it returns too much. PostgreSQL also refuses two columns of one name: a row would have the last only.
   */
  read(statement: SqlStatement): Promise<readonly SqlRow[]>
  /**
   * Settles when the work is durable, or undone as a whole. `work` may run more than once, so its only effects are those
   * of `tx`, and it awaits only `tx`.
   */
  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T>
  /** Rejects with TARGET_FAILED if the statement is invalid; runs nothing. */
  check(statement: SqlStatement): Promise<void>
  /** Waits for calls in progress; later ones are SHUTTING_DOWN. */
  close(): Promise<void>
}

export interface SqlDatabaseOptions {
  /** `postgres://…`, or `sqlite:` and an absolute path to a file that exists. */
  readonly url: string
  /** User and password replace those of the address. */
  readonly user?: string | undefined
  readonly password?: string | undefined
  /** The time limit of a statement, and of getting a connection or a lock. */
  readonly timeoutMillis: number
  readonly maxConnections: number
  /** Called when a connection is lost while it is idle. */
  readonly onIdleLoss: (error: Error) => void
}
