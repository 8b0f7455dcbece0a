import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import { readPostgresAddress } from '#protocols/sql/postgres-address.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { AuditSeal } from './audit-seal.ts'
import { type MigrationPolicy, migrate, readMigrations, readSchema, type Schema } from './migrations.ts'
import type { DatabaseTransaction, Durability, MigrationPlan, PoolFigures, SqlClient, SqlQuery } from './sql-client.ts'
import { SqliteClient } from './sqlite.ts'

/** Gets the milliseconds of each transaction, failed ones included. */
export type TransactionMeter = (millis: number) => void

interface DatabasesParts {
  readonly clock: Clock
  readonly log: Logger
  /** For the audit, in whichever database that is. */
  readonly seal?: AuditSeal | undefined
  /** `apply` if absent. */
  readonly migrations?: MigrationPolicy | undefined
  readonly meter?: TransactionMeter | undefined
}

interface Opened {
  readonly client: LazyClient
  users: number
}

/**
 * The databases in use, by address. Users of the same address share its connections, since a SQLite file has only one
 * writer; the last one that releases it closes it.
 */
export class Databases {
  readonly #parts: DatabasesParts
  readonly #opened = new Map<string, Opened>()

  constructor(parts: DatabasesParts) {
    this.#parts = parts
  }

  /** Does not connect yet. Throws an Error for an address of an unknown kind. */
  use(url: string): { readonly client: LazyClient; readonly release: () => Promise<void> } {
    const { dialect, address } = readAddress(url)
    const opened = this.#opened.get(address) ?? { client: this.#lazy(dialect, address), users: 0 }
    this.#opened.set(address, opened)
    opened.users++
    let isReleased = false
    const release = async (): Promise<void> => {
      if (isReleased) return
      isReleased = true
      if (--opened.users > 0) return
      this.#opened.delete(address)
      await opened.client.close()
    }
    return { client: opened.client, release }
  }

  #lazy(dialect: SqlDialect, address: string): LazyClient {
    const { clock, log, seal, migrations = 'apply', meter } = this.#parts
    const open = async (): Promise<SqlClient> => {
      const client = await connect(dialect, address, log, seal)
      try {
        await migrate(client, readMigrations(dialect), clock, log, migrations)
        return client
      } catch (error) {
        await client.close()
        throw error
      }
    }
    return new LazyClient(dialect, open, meter)
  }
}

/** The migrations of the database at that address, which stays as it is. An SQLite file must exist. */
export async function readSchemaAt(url: string, log: Logger): Promise<Schema> {
  const { dialect, address } = readAddress(url)
  const client = await connect(dialect, address, log, undefined)
  try {
    return await readSchema(client, readMigrations(dialect))
  } finally {
    await client.close()
  }
}

/** A client of the database as it is, without migrating it. The driver of PostgreSQL is loaded only if needed. */
export async function connect(
  dialect: SqlDialect,
  address: string,
  log: Logger,
  seal: AuditSeal | undefined,
): Promise<SqlClient> {
  if (dialect === 'sqlite') return new SqliteClient(address, seal)
  const { PostgresClient } = await import('./postgres.ts')
  return new PostgresClient(address, log, seal)
}

/**
 * `postgres://…`, `postgresql://…` or `sqlite:<file>`. Throws an Error; the message never shows the address, which may
 * contain a password.
 */
export function readAddress(url: string): { readonly dialect: SqlDialect; readonly address: string } {
  if (/^postgres(ql)?:\/\//.test(url)) {
    readPostgresAddress(url)
    return { dialect: 'postgres', address: url }
  }
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (file === undefined) throw new Error('a database address starts with postgres:// or sqlite:')
  return { dialect: 'sqlite', address: realFile(resolve(file)) }
}

/** One file has one name, even if links lead to its folder. */
function realFile(file: string): string {
  try {
    return join(realpathSync(dirname(file)), basename(file))
  } catch {
    return file
  }
}

/**
 * Connects on first use. If that fails, the caller gets the error and the next caller tries again, so that a database
 * that is down for a while needs no restart of ours.
 */
export class LazyClient implements SqlClient {
  readonly dialect: SqlDialect
  readonly #connect: () => Promise<SqlClient>
  readonly #meter: TransactionMeter | undefined
  #client: SqlClient | undefined
  #connecting: Promise<SqlClient> | undefined
  #closed = false

  constructor(dialect: SqlDialect, connect: () => Promise<SqlClient>, meter?: TransactionMeter) {
    this.dialect = dialect
    this.#connect = connect
    this.#meter = meter
  }

  query<R>(query: SqlQuery<R>): Awaitable<R[]> {
    return this.#client === undefined ? this.open().then((client) => client.query(query)) : this.#client.query(query)
  }

  async transaction<T>(work: (tx: DatabaseTransaction) => Awaitable<T>, durable?: Durability): Promise<T> {
    const started = performance.now()
    try {
      return await (this.#client ?? (await this.open())).transaction(work, durable)
    } finally {
      this.#meter?.(performance.now() - started)
    }
  }

  owns(transaction: object): transaction is DatabaseTransaction {
    return this.#client?.owns(transaction) ?? false
  }

  get pool(): PoolFigures | undefined {
    return this.#client?.pool
  }

  get damage(): string | undefined {
    return this.#client?.damage
  }

  async findDamage(): Promise<string | undefined> {
    return await (this.#client ?? (await this.open())).findDamage?.()
  }

  async migrate(plan: MigrationPlan): Promise<void> {
    await (this.#client ?? (await this.open())).migrate(plan)
  }

  /** Connects now; all callers share the connection. */
  async open(): Promise<SqlClient> {
    if (this.#client !== undefined) return this.#client
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    const client = await this.#connecting
    this.#client = client
    if (this.#closed) await client.close()
    return client
  }

  async close(): Promise<void> {
    this.#closed = true
    const client = this.#client ?? (await this.#connecting?.catch(() => undefined))
    await client?.close()
  }
}
