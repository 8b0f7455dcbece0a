import type { Awaitable } from '#kernel/awaitable.ts'
import type { SqlDialect, SqlValue } from '#protocols/sql/sql-database.ts'
import type { AuditSeal } from './audit-seal.ts'

/** A statement and its values, always separate. `R` is the shape of its rows. */
export interface SqlQuery<R> {
  readonly sql: string
  readonly params: readonly SqlValue[]
  /** Set for the fixed statements of the program, which are kept prepared. */
  readonly name: string | undefined
  /** Rows come as lists of their columns instead of as objects, which is faster. */
  readonly asLists?: boolean
  /** Carries the type only. */
  readonly row?: R
}

export interface DatabaseReader {
  readonly dialect: SqlDialect
  query<R>(query: SqlQuery<R>): Awaitable<R[]>
}

/** Sees its own writes. Unusable once the transaction's function has returned. */
export interface DatabaseTransaction extends DatabaseReader {
  /** Seals what is appended to the audit; absent if this process has no key for it. */
  readonly seal?: AuditSeal | undefined
  /** For statements without rows; returns how many rows were changed. */
  run(query: SqlQuery<unknown>): Awaitable<number>
  /**
   * Like `run`, for a statement whose result no one needs. PostgreSQL gets it together with the statements that follow,
   * which saves a round trip; if it fails, the next of them that is awaited fails with its error, at the latest the commit.
   * The commit may follow without a wait too, so a transaction can be committed after the process was killed.
   */
  send(query: SqlQuery<unknown>): void
  /**
   * Leaves the item to `write`, which gets the items of all transactions that share a commit, as its last work. False if
   * the caller has to write the item itself.
   */
  leaveToEnd?<T>(item: T, write: (tx: DatabaseTransaction, items: readonly T[]) => Promise<void>): boolean
}

/** `runScript` runs a text of several statements. */
export type MigrationPlan = (tx: DatabaseTransaction, runScript: (script: string) => Promise<void>) => Promise<void>

/**
 * `soon`: a crash of the database may undo the commit, together with everything that was committed after it; for leases,
 * which then only expire early. Saves PostgreSQL a flush to disk; in SQLite it is the same as `now`.
 */
export type Durability = 'now' | 'soon'

/** The connections of a pool, and who waits for one. */
export interface PoolFigures {
  readonly max: number
  readonly total: number
  readonly idle: number
  readonly waiting: number
}

/**
 * A database. Failures are GatewayErrors: CONFLICT for a uniqueness rule, BAD_REQUEST for a value it can't store,
 * TARGET_UNREACHABLE if it does not answer, is locked or is full, TARGET_TIMEOUT if a statement takes too long.
 */
export interface SqlClient extends DatabaseReader {
  /** Reads what is committed. One statement is one snapshot. Writing is for transactions. */
  query<R>(query: SqlQuery<R>): Awaitable<R[]>
  /**
   * Settles when the work is durable, or undone as a whole. `work` may run more than once, so its only effects are those
   * of `tx`; it awaits only `tx` and starts no other transaction, since others wait for it.
   */
  transaction<T>(work: (tx: DatabaseTransaction) => Awaitable<T>, durable?: Durability): Promise<T>
  /** Whether the transaction is one of this client. */
  owns(transaction: object): transaction is DatabaseTransaction
  /** Runs a plan in one transaction, while other processes that migrate this database wait. */
  migrate(plan: MigrationPlan): Promise<void>
  /** What is damaged, once a statement or `findDamage` met it. Only SQLite tells. */
  readonly damage?: string | undefined
  /** Absent where connections are not shared, as in SQLite. */
  readonly pool?: PoolFigures | undefined
  /** Reads all of the database in another thread. */
  findDamage?(): Promise<string | undefined>
  /** Waits for calls in progress; later ones are SHUTTING_DOWN. */
  close(): Promise<void>
}
