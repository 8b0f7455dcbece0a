import { onTestFinished } from 'vitest'
import { LazyClient } from '#database/databases.ts'
import { migrate, readMigrations } from '#database/migrations.ts'
import type { DatabaseTransaction, Durability, SqlClient, SqlQuery } from '#database/sql-client.ts'
import { inMemory, SqliteClient } from '#database/sqlite.ts'
import { dialectTexts } from '#database/statement.ts'
import { UserDirectoryStore } from '#directory/store/user-directory-store.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { type Clock, systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { SqlValue } from '#protocols/sql/sql-database.ts'

/** An empty database in memory, with all tables; it closes with the test. Its clock is that of the test, if one is given. */
export function memoryDatabase(clock?: Clock): MemoryDatabase {
  const database = new MemoryDatabase(clock)
  onTestFinished(() => database.close())
  return database
}

export class MemoryDatabase extends LazyClient {
  /** Every call rejects with it while it is set. */
  failure: Error | undefined
  readonly #clock: Clock | undefined

  constructor(clock?: Clock) {
    super('sqlite', async () => {
      const opened = new SqliteClient(inMemory)
      await migrate(opened, readMigrations('sqlite'), systemClock, silentLogger)
      return opened
    })
    this.#clock = clock
  }

  override async query<R>(query: SqlQuery<R>): Promise<R[]> {
    if (this.failure !== undefined) throw this.failure
    return await super.query(this.#atTestTime(query))
  }

  override async transaction<T>(work: (tx: DatabaseTransaction) => Awaitable<T>, durable?: Durability): Promise<T> {
    if (this.failure !== undefined) throw this.failure
    return await super.transaction((tx) => work(this.#clock === undefined ? tx : this.#onTestTime(tx)), durable)
  }

  #onTestTime(tx: DatabaseTransaction): DatabaseTransaction {
    const known: Partial<DatabaseTransaction> = {
      query: (query) => tx.query(this.#atTestTime(query)),
      run: (query) => tx.run(this.#atTestTime(query)),
      send: (query) => tx.send(this.#atTestTime(query)),
      leaveToEnd: (item, write) => tx.leaveToEnd?.(item, write) ?? false,
    }
    return new Proxy(tx, { get: (_, name: keyof DatabaseTransaction) => known[name] ?? Reflect.get(tx, name) })
  }

  #atTestTime<R>(query: SqlQuery<R>): SqlQuery<R> {
    if (this.#clock === undefined || !query.sql.includes(dialectTexts.sqlite.now)) return query
    const sql = query.sql.replaceAll(dialectTexts.sqlite.now, String(this.#clock().getTime()))
    return { ...query, sql, name: undefined }
  }
}

/** The stored rows of a table, by their keys. */
export const rowsOf = async (database: SqlClient, table: string): Promise<Record<string, SqlValue>[]> =>
  database.query({ sql: `select * from ${table} order by 1`, params: [], name: undefined })

/** An empty user directory in its own database, which closes with it. */
export function memoryUserDirectory(name = 'people'): UserDirectory {
  const database = new MemoryDatabase()
  return new UserDirectoryStore(database, name, systemClock, () => database.close())
}
