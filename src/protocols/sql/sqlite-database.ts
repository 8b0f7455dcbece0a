import { existsSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { RawBuilder } from 'kysely'
import { GatewayError } from '#kernel/errors.ts'
import { compileSql } from '#protocols/sql/compile-sql.ts'
import type { SqlDatabase, SqlRow, SqlStatement, SqlTransaction } from '#protocols/sql/sql-database.ts'
import { isBusy, sqliteError } from '#protocols/sql/sql-errors.ts'

/** Statements that are kept prepared; the least recently used goes first. */
const maxPrepared = 100

interface Connections {
  readonly writer: Prepared
  readonly reader: Prepared
}

/**
 * Somebody else's SQLite file, left as it is: nothing is set that outlives the connection, and a file that is not there
 * is not made. One connection writes, one transaction after another; a second one reads what is committed.
 */
export class SqliteDatabase implements SqlDatabase {
  readonly dialect = 'sqlite'
  readonly #file: string
  readonly #timeoutMillis: number
  #connections: Connections | undefined
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(file: string, timeoutMillis: number) {
    this.#file = file
    this.#timeoutMillis = timeoutMillis
  }

  query(statement: RawBuilder<unknown> | SqlStatement): Promise<readonly SqlRow[]> {
    return this.#told(() => {
      const { reader } = this.#open()
      return this.#patiently(() => reader.all(compileSql(statement, 'sqlite')))
    })
  }

  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#told(() => {
      const result = this.#last.then(() => this.#attempt(work))
      this.#last = result.catch(() => {})
      return result
    })
  }

  check(statement: SqlStatement): Promise<void> {
    return this.#told(async () => void this.#open().reader.prepare(statement.sql))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#last
    this.#connections?.reader.close()
    this.#connections?.writer.close()
  }

  async #told<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', 'the database is closed')
    try {
      return await work()
    } catch (error) {
      throw sqliteError(error)
    }
  }

  #open(): Connections {
    if (this.#connections !== undefined) return this.#connections
    if (!existsSync(this.#file)) {
      throw new GatewayError('TARGET_UNREACHABLE', 'there is no such database file', { retryAfter: 30 })
    }
    const writer = new Prepared(new DatabaseSync(this.#file, { timeout: 20 }))
    try {
      this.#connections = {
        writer,
        reader: new Prepared(new DatabaseSync(this.#file, { readOnly: true, timeout: 20 })),
      }
      return this.#connections
    } catch (error) {
      writer.close()
      throw error
    }
  }

  async #attempt<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    const { writer } = this.#open()
    await this.#patiently(() => writer.exec('begin immediate'))
    const tx = new SqliteTransaction(writer)
    try {
      const result = await work(tx)
      await this.#patiently(() => writer.exec('commit'))
      return result
    } catch (error) {
      writer.rollBack()
      throw error
    } finally {
      tx.end()
    }
  }

  /** Waits for other processes to end their writing, without standing in the way of everything else here. */
  async #patiently<T>(statement: () => T): Promise<T> {
    const giveUp = performance.now() + this.#timeoutMillis
    for (;;) {
      try {
        return statement()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= giveUp) throw error
      }
      await delay(10)
    }
  }
}

class SqliteTransaction implements SqlTransaction {
  readonly dialect = 'sqlite'
  readonly #writer: Prepared
  #open = true

  constructor(writer: Prepared) {
    this.#writer = writer
  }

  async query(statement: RawBuilder<unknown> | SqlStatement): Promise<readonly SqlRow[]> {
    return this.#use().all(compileSql(statement, 'sqlite'))
  }

  async run(statement: RawBuilder<unknown> | SqlStatement): Promise<number> {
    return this.#use().run(compileSql(statement, 'sqlite'))
  }

  end(): void {
    this.#open = false
  }

  #use(): Prepared {
    if (!this.#open) throw new GatewayError('INTERNAL', 'a statement came after its transaction had ended')
    return this.#writer
  }
}

/** A connection with its prepared statements. */
class Prepared {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  all({ sql, params }: SqlStatement): readonly SqlRow[] {
    return this.prepare(sql).all(...params)
  }

  run({ sql, params }: SqlStatement): number {
    return Number(this.prepare(sql).run(...params).changes)
  }

  exec(sql: 'begin immediate' | 'commit'): void {
    this.#database.exec(sql)
  }

  rollBack(): void {
    if (this.#database.isTransaction) this.#database.exec('rollback')
  }

  close(): void {
    this.#database.close()
  }

  prepare(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql)
    statement.setReadBigInts(true)
    this.#statements.delete(sql)
    this.#statements.set(sql, statement)
    const [oldest] = this.#statements.size > maxPrepared ? this.#statements.keys() : []
    if (oldest !== undefined) this.#statements.delete(oldest)
    return statement
  }
}
