import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from 'sql-template-tag'
import { GatewayError } from '#kernel/errors.ts'
import { tracer } from '#kernel/tracing.ts'
import {
  compileSql,
  type SqlDatabase,
  type SqlRow,
  type SqlStatement,
  type SqlTransaction,
} from '#protocols/sql/sql-database.ts'
import { isBusy, StatementCache, sqliteError } from '#protocols/sql/sqlite.ts'
import { traceStatement } from '#protocols/sql/statement-span.ts'

interface Connection {
  readonly database: DatabaseSync
  readonly statements: StatementCache
}

interface Connections {
  readonly writer: Connection
  readonly reader: Connection
}

/**
 * The SQLite file of a target, left unchanged: no setting outlives the connection, and a missing file isn't
 * created. One connection writes, one transaction after another; a second one reads what is committed.
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

  query(statement: Sql | SqlStatement): Promise<readonly SqlRow[]> {
    return this.#run(() => {
      const { reader } = this.#open()
      return this.#patiently(() => all(reader, statement))
    })
  }

  read(statement: SqlStatement): Promise<readonly SqlRow[]> {
    return this.query(statement)
  }

  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#run(() => {
      const giveUp = performance.now() + this.#timeoutMillis
      const result = this.#last.then(() => this.#attempt(work, giveUp))
      this.#last = result.catch(() => {})
      return result
    })
  }

  check(statement: SqlStatement): Promise<void> {
    return this.#run(() => {
      const { reader } = this.#open()
      return this.#patiently(() => void reader.statements.get(statement))
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#last
    this.#connections?.reader.database.close()
    this.#connections?.writer.database.close()
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', 'the database is closed')
    try {
      return await work()
    } catch (error) {
      throw sqliteError(error, 'foreign')
    }
  }

  #open(): Connections {
    if (this.#connections !== undefined) return this.#connections
    if (!existsSync(this.#file)) {
      throw new GatewayError('TARGET_UNREACHABLE', 'there is no such database file', { retryAfter: 30 })
    }
    const writer = connect(this.#file, false)
    try {
      this.#connections = { writer, reader: connect(this.#file, true) }
      return this.#connections
    } catch (error) {
      writer.database.close()
      throw error
    }
  }

  async #attempt<T>(work: (tx: SqlTransaction) => Promise<T>, giveUp: number): Promise<T> {
    const { writer } = this.#open()
    await this.#patiently(() => writer.database.exec('begin immediate'), giveUp)
    const tx = new SqliteTransaction(writer)
    try {
      const result = await work(tx)
      await this.#patiently(() => writer.database.exec('commit'))
      return result
    } catch (error) {
      if (writer.database.isTransaction) writer.database.exec('rollback')
      throw error
    } finally {
      tx.end()
    }
  }

  /** Waits for other processes to end their writing, without blocking the event loop. */
  async #patiently<T>(statement: () => T, giveUp = performance.now() + this.#timeoutMillis): Promise<T> {
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
  readonly #writer: Connection
  #open = true

  constructor(writer: Connection) {
    this.#writer = writer
  }

  async query(statement: Sql | SqlStatement): Promise<readonly SqlRow[]> {
    return all(this.#use(), statement)
  }

  async run(statement: Sql | SqlStatement): Promise<number> {
    const compiled = compileSql(statement, 'sqlite')
    const { statements } = this.#use()
    const run = (): number => Number(statements.get(compiled).run(...compiled.params).changes)
    return tracer === undefined ? run() : traceStatement(tracer, 'sqlite', compiled.sql, run)
  }

  end(): void {
    this.#open = false
  }

  #use(): Connection {
    if (!this.#open) throw new GatewayError('INTERNAL', 'a statement came after its transaction had ended')
    return this.#writer
  }
}

function connect(file: string, readOnly: boolean): Connection {
  // SQLite would wait in the event loop, once for each call.
  const database = new DatabaseSync(file, { readOnly, timeout: 0 })
  return { database, statements: new StatementCache(database, { readBigInts: true }) }
}

function all({ statements }: Connection, statement: Sql | SqlStatement): readonly SqlRow[] {
  const compiled = compileSql(statement, 'sqlite')
  const read = (): readonly SqlRow[] => statements.get(compiled).all(...compiled.params)
  return tracer === undefined ? read() : traceStatement(tracer, 'sqlite', compiled.sql, read)
}
