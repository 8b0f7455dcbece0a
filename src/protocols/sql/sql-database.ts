import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

export type SqlDialect = 'sqlite' | 'postgres'
export type SqlValue = string | number | bigint | null

/** Our own database, or that of a target, whose schema and accounts are not ours. */
export type Owner = 'own' | 'foreign'

/** Columns by name. Every statement of ours reads its columns as text. */
export type SqlRow = Readonly<Record<string, unknown>>

/** A statement and its values, always apart. */
export interface SqlStatement {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

export interface SqlReader {
  readonly dialect: SqlDialect
  /** One statement is one snapshot. */
  query(statement: RawBuilder<unknown> | SqlStatement): Promise<readonly SqlRow[]>
}

/** Sees its own writes. Unusable once the transaction's function has returned. */
export interface SqlTransaction extends SqlReader {
  /** How many rows were changed. */
  run(statement: RawBuilder<unknown> | SqlStatement): Promise<number>
}

/**
 * The database of a target. Failures are GatewayErrors: CONFLICT for a uniqueness rule, BAD_REQUEST for a value that a
 * column cannot hold, TARGET_UNREACHABLE when it does not answer, is locked, full or read-only, TARGET_TIMEOUT when a
 * statement takes too long, and TARGET_FAILED for every other error.
 */
export interface SqlDatabase extends SqlReader {
  /**
   * Settles when the work is durable, or undone as a whole. `work` may run more than once, so its only effects are those
   * of `tx`, and it awaits only `tx`.
   */
  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T>
  /** Rejects with TARGET_FAILED when the database would not understand the statement; runs nothing. */
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
  /** How long a statement, and how long getting a connection or a lock may take. */
  readonly timeoutMillis: number
  readonly maxConnections: number
  /** Called when a connection is lost while it is idle. */
  readonly onIdleLoss: (error: Error) => void
}

/** Kysely as a compiler only: it quotes names, numbers parameters and never runs anything. */
const builders: Readonly<Record<SqlDialect, Kysely<unknown>>> = {
  sqlite: new Kysely<unknown>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
  postgres: new Kysely<unknown>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }),
}

export function compileSql(statement: RawBuilder<unknown> | SqlStatement, dialect: SqlDialect): SqlStatement {
  if (!('compile' in statement)) return statement
  const { sql, parameters } = statement.compile(builders[dialect])
  return { sql, params: parameters as readonly SqlValue[] }
}
