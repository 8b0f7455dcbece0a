import { setTimeout as delay } from 'node:timers/promises'
import type { RawBuilder } from 'kysely'
import pg from 'pg'
import { GatewayError } from '#kernel/errors.ts'
import { compileSql } from '#protocols/sql/compile-sql.ts'
import type {
  SqlDatabase,
  SqlDatabaseOptions,
  SqlRow,
  SqlStatement,
  SqlTransaction,
} from '#protocols/sql/sql-database.ts'
import { isConnectionLoss, isRetryable, postgresError } from '#protocols/sql/sql-errors.ts'

const maxAttempts = 8
/** A connection that died while it was idle is found out at once; one that is waited for in vain is not waited for twice. */
const quickMillis = 1000

/** Whatever a column holds is read as the text that PostgreSQL writes for it. */
const asText: pg.CustomTypesConfig = {
  getTypeParser: (() => (text: unknown) => text) as pg.CustomTypesConfig['getTypeParser'],
}

/** A PostgreSQL database, by a pool of connections that are made when they are needed. */
export class PostgresDatabase implements SqlDatabase {
  readonly dialect = 'postgres'
  readonly #pool: pg.Pool
  readonly #allDone = Promise.withResolvers<void>()
  #underWay = 0
  #closed = false

  constructor({ url, user, password, timeoutMillis, maxConnections, onIdleLoss }: SqlDatabaseOptions) {
    this.#pool = new pg.Pool({
      connectionString: withAccount(url, user, password),
      application_name: 'gatehouse',
      max: maxConnections,
      connectionTimeoutMillis: timeoutMillis,
      idleTimeoutMillis: 30_000,
      statement_timeout: timeoutMillis,
      lock_timeout: timeoutMillis,
      idle_in_transaction_session_timeout: 2 * timeoutMillis,
      query_timeout: timeoutMillis + 1000,
      keepAlive: true,
      types: asText,
    })
    // Between two statements of a transaction a loss has nobody to be told to; the next statement tells it.
    this.#pool.on('connect', (connection) => {
      connection.on('error', () => {})
    })
    this.#pool.on('error', onIdleLoss)
  }

  query(statement: RawBuilder<unknown> | SqlStatement): Promise<readonly SqlRow[]> {
    return this.#counted(async () => {
      const compiled = compileSql(statement, 'postgres')
      const started = performance.now()
      try {
        return await execute(this.#pool, compiled)
      } catch (error) {
        if (!isConnectionLoss(error) || performance.now() - started > quickMillis) throw error
        return await execute(this.#pool, compiled)
      }
    })
  }

  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#counted(async () => {
      for (let attempt = 1; ; attempt++) {
        const progress = { committing: false }
        const started = performance.now()
        try {
          return await this.#attempt(work, progress)
        } catch (error) {
          // What was lost before the commit is undone, and may be done anew; once, since a dead server stays dead.
          const quick = performance.now() - started <= quickMillis
          const lost = isConnectionLoss(error) && !progress.committing && attempt === 1 && quick
          if (!lost && (!isRetryable(error) || attempt >= maxAttempts)) throw error
          await delay(Math.random() * 10 * 2 ** attempt)
        }
      }
    })
  }

  check({ sql, params }: SqlStatement): Promise<void> {
    return this.#counted(async () => {
      if (!/^\s*(?:select|insert|update|delete|with|values)\b/i.test(sql)) return
      await execute(this.#pool, { sql: `explain ${sql}`, params }).catch((error: unknown) => {
        // The values are made up, so whatever is said of them says nothing of the statement.
        if (!/^2[23]/.test(String(Reflect.get(Object(error), 'code')))) throw error
      })
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#underWay > 0) await this.#allDone.promise
    await this.#pool.end()
  }

  /** The pool forgets whoever waits for a connection when it ends, so it ends when nobody does. */
  async #counted<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new GatewayError('SHUTTING_DOWN', 'the database is closed')
    this.#underWay++
    try {
      return await work()
    } catch (error) {
      throw postgresError(error)
    } finally {
      if (--this.#underWay === 0 && this.#closed) this.#allDone.resolve()
    }
  }

  async #attempt<T>(work: (tx: SqlTransaction) => Promise<T>, progress: { committing: boolean }): Promise<T> {
    const connection = await this.#pool.connect()
    const tx = new PostgresTransaction(connection)
    let broken = false
    try {
      await connection.query('begin')
      const result = await work(tx)
      progress.committing = true
      await connection.query('commit')
      return result
    } catch (error) {
      broken = isConnectionLoss(error)
      if (!broken) {
        await connection.query('rollback').catch(() => {
          broken = true
        })
      }
      throw error
    } finally {
      tx.end()
      connection.release(broken)
    }
  }
}

class PostgresTransaction implements SqlTransaction {
  readonly dialect = 'postgres'
  readonly #connection: pg.PoolClient
  #open = true

  constructor(connection: pg.PoolClient) {
    this.#connection = connection
  }

  async query(statement: RawBuilder<unknown> | SqlStatement): Promise<readonly SqlRow[]> {
    return (await this.#execute(statement)).rows as SqlRow[]
  }

  async run(statement: RawBuilder<unknown> | SqlStatement): Promise<number> {
    return (await this.#execute(statement)).rowCount ?? 0
  }

  end(): void {
    this.#open = false
  }

  #execute(statement: RawBuilder<unknown> | SqlStatement): Promise<pg.QueryResult> {
    if (!this.#open) throw new GatewayError('INTERNAL', 'a statement came after its transaction had ended')
    return this.#connection.query(config(compileSql(statement, 'postgres')))
  }
}

const execute = async (pool: pg.Pool, statement: SqlStatement): Promise<readonly SqlRow[]> =>
  (await pool.query(config(statement))).rows as SqlRow[]

/** In the extended protocol a text is one prepared statement, and cannot be several. */
const config = ({ sql, params }: SqlStatement): pg.QueryConfig & { readonly queryMode: 'extended' } => ({
  text: sql,
  values: params as unknown[],
  queryMode: 'extended',
})

function withAccount(url: string, user: string | undefined, password: string | undefined): string {
  if (user === undefined && password === undefined) return url
  const address = new URL(url)
  if (user !== undefined) address.username = encodeURIComponent(user)
  if (password !== undefined) address.password = encodeURIComponent(password)
  return address.toString()
}
