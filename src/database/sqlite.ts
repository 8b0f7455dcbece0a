import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type Awaitable, settle } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { fileFailure } from '#kernel/file-failure.ts'
import { tracer } from '#kernel/tracing.ts'
import { isBusy, isDamaged, StatementCache, sqliteError } from '#protocols/sql/sqlite.ts'
import { traceStatement, traceTransaction } from '#protocols/sql/statement-span.ts'
import type { AuditSeal } from './audit-seal.ts'
import { type CommitConnection, type CommitEnd, type Lateness, SharedCommits } from './shared-commits.ts'
import type { DatabaseTransaction, MigrationPlan, SqlClient, SqlQuery } from './sql-client.ts'

/**
 * `case_sensitive_like` makes LIKE compare as PostgreSQL does; letter case is folded by us, before a value is stored.
 * The short timeout bounds how long the event loop is blocked; the queue of writers waits longer, without blocking.
 */
const settings = `
  pragma busy_timeout = 20;
  pragma foreign_keys = on;
  pragma case_sensitive_like = on;
  pragma cache_size = -16000;
  pragma temp_store = memory;
  pragma mmap_size = 268435456;
`
export const inMemory = ':memory:'
const migrationLockMillis = 60_000
/**
 * Another process that closes the database locks it briefly. That does not affect a connection that has read once, so
 * only the opening waits for it.
 */
const waitToOpen = 'pragma busy_timeout = 10000;'
const firstRead = 'select count(*) from sqlite_schema;'

/**
 * A database in one file: one connection writes, and another reads meanwhile, so that no reader sees uncommitted rows.
 * Between commits the first one reads too: it keeps its cache after its own commits, while every commit empties the cache
 * of the other.
 */
export class SqliteClient implements SqlClient {
  readonly dialect = 'sqlite'
  readonly #writer: DatabaseSync
  readonly #reader: DatabaseSync
  readonly #writes: StatementCache
  readonly #reads: StatementCache
  readonly #readsBetween: StatementCache
  readonly #commits: SharedCommits
  /** Seals what is appended to the audit. */
  readonly seal: AuditSeal | undefined
  readonly #file: string
  readonly #closing = new AbortController()
  #damage: string | undefined
  #closed = false

  /**
   * Creates the file and its folder if they do not exist, readable by their owner only. With `inMemory` instead of
   * a file, one connection does everything, so readers see uncommitted rows: for tests.
   */
  constructor(file: string, seal?: AuditSeal) {
    this.seal = seal
    this.#file = file
    if (file !== inMemory) makeFile(file)
    this.#writer = openFile(file, { readOnly: false })
    try {
      this.#writer.exec(`${waitToOpen} pragma journal_mode = wal; pragma synchronous = full; ${firstRead} ${settings}`)
      this.#reader = file === inMemory ? this.#writer : openFile(file, { readOnly: true })
      this.#reader.exec(`${waitToOpen} ${firstRead} ${settings} pragma cache_size = -4000;`)
    } catch (error) {
      this.#writer.close()
      throw openingError(file, error)
    }
    this.#writes = new StatementCache(this.#writer)
    this.#reads = new StatementCache(this.#reader)
    this.#readsBetween = new StatementCache(this.#writer, { check: assertReads })
    this.#commits = new SharedCommits(commitConnection(this.#writer, (error) => this.failure(error)))
  }

  query<R>(query: SqlQuery<R>): R[] {
    if (this.#closed) throw closedError()
    if (tracer === undefined) return this.#read(query)
    return traceStatement(tracer, 'sqlite', query.sql, this.#read.bind(this, query) as () => R[])
  }

  #read<R>(query: SqlQuery<R>): R[] {
    try {
      const statements = this.#writer.isTransaction ? this.#reads : this.#readsBetween
      return statements.get(query).all(...query.params) as unknown as R[]
    } catch (error) {
      throw this.failure(error)
    }
  }

  async transaction<T>(work: (tx: DatabaseTransaction) => Awaitable<T>): Promise<T> {
    if (this.#closed) throw closedError()
    if (tracer === undefined) return await this.#transaction(work)
    return await traceTransaction(tracer, 'sqlite', this.#transaction.bind(this, work) as () => Promise<T>)
  }

  #transaction<T>(work: (tx: DatabaseTransaction) => Awaitable<T>): Promise<T> {
    return this.#commits.add((end, late) => {
      const tx = new SqliteTransaction(this, this.#writes, end, late)
      return settle(
        () => work(tx),
        (result) => {
          tx.end()
          return result
        },
        (error) => {
          tx.end()
          throw error
        },
      )
    })
  }

  owns(transaction: object): transaction is DatabaseTransaction {
    return transaction instanceof SqliteTransaction && transaction.client === this
  }

  get damage(): string | undefined {
    return this.#damage
  }

  async findDamage(): Promise<string | undefined> {
    if (this.#file !== inMemory && this.#damage === undefined) {
      this.#damage ??= await readAll(this.#file, this.#closing.signal)
    }
    return this.#damage
  }

  /** The error of a statement. */
  failure(thrown: unknown): unknown {
    if (isDamaged(thrown)) this.#damage ??= thrown instanceof Error ? thrown.message : String(thrown)
    return sqliteError(thrown, 'own', this.#file)
  }

  get isInTransaction(): boolean {
    return this.#writer.isTransaction
  }

  async migrate(plan: MigrationPlan): Promise<void> {
    await this.#commits.idle()
    const giveUp = performance.now() + migrationLockMillis
    while (!tryBegin(this.#writer, 'begin exclusive')) {
      if (performance.now() >= giveUp) throw sqliteError(new Error('another process keeps the database locked'))
      await delay(50)
    }
    const tx = new SqliteTransaction(this, this.#writes)
    try {
      await plan(tx, async (script) => this.#writer.exec(script))
      this.#writer.exec('commit')
    } catch (error) {
      if (this.#writer.isTransaction) this.#writer.exec('rollback')
      throw this.failure(error)
    } finally {
      tx.end()
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#closing.abort()
    await this.#commits.idle()
    if (this.#reader !== this.#writer) this.#reader.close()
    this.#writer.close()
  }
}

class SqliteTransaction implements DatabaseTransaction {
  readonly dialect = 'sqlite'
  readonly client: SqliteClient
  readonly #statements: StatementCache
  readonly #end: CommitEnd | undefined
  readonly #late: Lateness | undefined
  #open = true

  constructor(client: SqliteClient, statements: StatementCache, end?: CommitEnd, late?: Lateness) {
    this.client = client
    this.#statements = statements
    this.#end = end
    this.#late = late
  }

  query<R>(query: SqlQuery<R>): R[] {
    return this.#execute(query, () => this.#statements.get(query).all(...query.params) as unknown as R[])
  }

  run(query: SqlQuery<unknown>): number {
    return this.#execute(query, () => Number(this.#statements.get(query).run(...query.params).changes))
  }

  send(query: SqlQuery<unknown>): void {
    this.#execute(query, () => this.#statements.get(query).run(...query.params))
  }

  leaveToEnd<T>(item: T, write: (tx: DatabaseTransaction, items: readonly T[]) => Promise<void>): boolean {
    this.#assertOpen()
    const writeAll = (items: readonly unknown[]): Promise<void> =>
      write(new SqliteTransaction(this.client, this.#statements), items as readonly T[])
    this.#end?.leave(write, item, writeAll)
    return this.#end !== undefined
  }

  get seal(): AuditSeal | undefined {
    return this.client.seal
  }

  end(): void {
    this.#open = false
  }

  /** A failure such as a full disk may end it within SQLite. Later statements would be committed on their own. */
  #assertOpen(): void {
    if (this.#open && this.#late?.isOver !== true && this.client.isInTransaction) return
    throw new GatewayError('INTERNAL', 'a statement came after its transaction had ended')
  }

  #execute<T>({ sql }: SqlQuery<unknown>, statement: () => T): T {
    this.#assertOpen()
    try {
      return tracer === undefined ? statement() : traceStatement(tracer, 'sqlite', sql, statement)
    } catch (error) {
      throw this.client.failure(error)
    }
  }
}

/** SQLite gives its log files the permissions of the file itself. */
function makeFile(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    closeSync(openSync(file, 'a', 0o600))
  } catch (cause) {
    const reason = fileFailure(cause) ?? `${file} cannot be used: ${cause}`
    throw new GatewayError('TARGET_UNREACHABLE', reason, { cause, retryAfter: 30 })
  }
}

/** The first damage of the file; undefined if it has none, or if the signal came first. */
async function readAll(file: string, signal: AbortSignal): Promise<string | undefined> {
  const ended = Promise.withResolvers<string | undefined>()
  const thread = new Worker(new URL('./damage-thread.ts', import.meta.url), { workerData: file, stderr: true })
  thread.unref()
  thread.once('message', ended.resolve)
  thread.once('error', (error) => (isDamaged(error) ? ended.resolve(error.message) : ended.reject(error)))
  thread.once('exit', () => ended.resolve(undefined))
  const stop = (): void => void thread.terminate()
  signal.addEventListener('abort', stop)
  try {
    return await ended.promise
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

const restoreAdvice = 'Move it away and restore a backup with "gatehouse restore"'

/** Why a file can't be opened: it names the file, and what an operator can do. */
export function openingError(file: string, error: unknown, ifDamaged = restoreAdvice): unknown {
  const failure = sqliteError(error)
  const ofFile = fileFailure(error)
  if (ofFile === undefined && (!(failure instanceof GatewayError) || failure.code !== 'TARGET_UNREACHABLE'))
    return failure
  const known = error instanceof Error ? error.message : String(error)
  const remedy = isDamaged(error)
    ? ifDamaged
    : 'Check that this user can write to the file and its folder, and that the disk is neither read-only nor full'
  const text = ofFile ?? `${file} cannot be used: ${known}. ${remedy}`
  return new GatewayError('TARGET_UNREACHABLE', text, { cause: error, retryAfter: 30 })
}

function openFile(file: string, options: { readOnly: boolean }): DatabaseSync {
  try {
    return new DatabaseSync(file, options)
  } catch (error) {
    throw openingError(file, error)
  }
}

/** Throws for a statement that would write. */
function assertReads(database: DatabaseSync, text: string): void {
  const writes = database
    .prepare(`explain ${text}`)
    .all()
    .some(({ opcode, p2 }) => opcode === 'Transaction' && p2 !== 0)
  if (writes) throw new GatewayError('INTERNAL', 'a statement that writes came without a transaction')
}

function tryBegin(database: DatabaseSync, statement: 'begin immediate' | 'begin exclusive'): boolean {
  try {
    database.exec(statement)
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw sqliteError(error)
  }
}

function commitConnection(database: DatabaseSync, failure: (error: unknown) => unknown): CommitConnection {
  const [savepoint, release, rollbackTo, commit] = ['savepoint unit', 'release unit', 'rollback to unit', 'commit'].map(
    (text) => database.prepare(text),
  )
  return {
    begin: () => tryBegin(database, 'begin immediate'),
    savepoint: () => savepoint?.run(),
    release: () => release?.run(),
    rollbackToSavepoint: () => rollbackTo?.run(),
    commit: () => {
      try {
        commit?.run()
      } catch (error) {
        throw failure(error)
      }
    },
    rollback: () => database.exec('rollback'),
    get inTransaction() {
      return database.isTransaction
    },
  }
}

const closedError = (): GatewayError => new GatewayError('SHUTTING_DOWN', 'the database is closed')
