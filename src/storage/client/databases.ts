import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { AuditSeal } from '#storage/audit/audit-seal.ts'
import type { DatabaseTransaction, Durability, MigrationPlan, SqlClient, SqlQuery } from '#storage/client/sql-client.ts'
import { SqliteClient } from '#storage/client/sqlite.ts'
import { statement } from '#storage/client/statement.ts'

interface Opened {
  readonly client: LazyClient
  users: number
}

/**
 * The databases in use, by address. Users of the same address share its connections, since a SQLite file has only one
 * writer; the last one that releases it closes it.
 */
export class Databases {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #seal: AuditSeal | undefined
  readonly #opened = new Map<string, Opened>()

  /** `seal` is for the audit, in whichever database that is. */
  constructor(clock: Clock, log: Logger, seal?: AuditSeal) {
    this.#clock = clock
    this.#log = log
    this.#seal = seal
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
    return new LazyClient(dialect, async () => {
      const client = await connect(dialect, address, this.#log, this.#seal)
      try {
        await migrate(client, readMigrations(dialect), this.#clock, this.#log)
        return client
      } catch (error) {
        await client.close()
        throw error
      }
    })
  }
}

/** The driver of PostgreSQL is loaded only if needed. */
async function connect(
  dialect: SqlDialect,
  address: string,
  log: Logger,
  seal: AuditSeal | undefined,
): Promise<SqlClient> {
  if (dialect === 'sqlite') return new SqliteClient(address, seal)
  const { PostgresClient } = await import('#storage/client/postgres.ts')
  return new PostgresClient(address, log, seal)
}

/** `postgres://…`, `postgresql://…` or `sqlite:<file>`. The message never shows the address, which may contain a password. */
export function readAddress(url: string): { readonly dialect: SqlDialect; readonly address: string } {
  if (/^postgres(ql)?:\/\//.test(url)) return { dialect: 'postgres', address: url }
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
  #client: SqlClient | undefined
  #connecting: Promise<SqlClient> | undefined
  #closed = false

  constructor(dialect: SqlDialect, connect: () => Promise<SqlClient>) {
    this.dialect = dialect
    this.#connect = connect
  }

  async query<R>(query: SqlQuery<R>): Promise<R[]> {
    return (this.#client ?? (await this.open())).query(query)
  }

  async transaction<T>(work: (tx: DatabaseTransaction) => Promise<T>, durable?: Durability): Promise<T> {
    return (this.#client ?? (await this.open())).transaction(work, durable)
  }

  owns(transaction: object): transaction is DatabaseTransaction {
    return this.#client?.owns(transaction) ?? false
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

export interface Migration {
  readonly name: string
  readonly script: string
  readonly hash: string
}

const namePattern = /^\d{4}_[a-z0-9_]+\.sql$/

/** The migrations of a dialect, in order. A released file is never changed: the next one corrects it. */
export function readMigrations(dialect: SqlDialect): Migration[] {
  const folder = new URL(`../migrations/${dialect}/`, import.meta.url)
  return readdirSync(fileURLToPath(folder))
    .filter((name) => namePattern.test(name))
    .sort()
    .map((name) => migration(name, readFileSync(new URL(name, folder), 'utf8')))
}

/** The hash does not depend on line endings. */
export function migration(name: string, text: string): Migration {
  const script = text.replaceAll('\r\n', '\n')
  return { name, script, hash: createHash('sha256').update(script).digest('hex') }
}

const selectApplied = statement<object, Pick<Migration, 'name' | 'hash'>>(`select name, hash from schema_migrations`)
const insertApplied = statement<Pick<Migration, 'name' | 'hash'> & { applied: number }>(
  `insert into schema_migrations (name, hash, applied) values (:name, :hash, :applied)`,
)

/**
 * Runs all pending migrations or none, while other processes that try the same wait. Throws, and changes nothing,
 * if a newer version wrote the database, or a migration was changed after it ran.
 */
export async function migrate(
  client: SqlClient,
  migrations: readonly Migration[],
  clock: Clock,
  log: Logger,
): Promise<void> {
  await client.migrate(async (tx, runScript) => {
    await runScript(
      'create table if not exists schema_migrations (name text primary key, hash text not null, applied bigint not null)',
    )
    const done = await selectApplied.all(tx, {})
    const pending = pendingMigrations(done, migrations)
    for (const { name, script, hash } of pending) {
      await runScript(script)
      await insertApplied.run(tx, { name, hash, applied: clock().getTime() })
      log.info('database migrated', { migration: name })
    }
  })
}

function pendingMigrations(
  done: readonly { readonly name: string; readonly hash: string }[],
  known: readonly Migration[],
): readonly Migration[] {
  const byName = new Map(known.map((each) => [each.name, each]))
  for (const { name, hash } of done) {
    const migration = byName.get(name)
    if (migration === undefined) {
      throw new Error(
        `this program does not know the migration ${name} of the database: a newer version wrote it, or a checkout from before the first release`,
      )
    }
    if (migration.hash !== hash) {
      throw new Error(`the migration ${name} was changed after it ran on this database`)
    }
  }
  const names = new Set(done.map(({ name }) => name).sort())
  const last = [...names].at(-1) ?? ''
  const pending = known.filter(({ name }) => !names.has(name))
  const late = pending.find(({ name }) => name < last)
  if (late !== undefined) {
    throw new Error(`the migration ${late.name} comes before ${last}, which this database already has`)
  }
  return pending
}
