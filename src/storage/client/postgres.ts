import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditSeal } from '#storage/audit/audit-seal.ts'
import { isConnectionLoss, isRetryable, postgresError } from '#storage/client/postgres-errors.ts'
import type { Durability, MigrationPlan, SqlClient, SqlQuery, SqlTransaction } from '#storage/client/sql-client.ts'

const maxAttempts = 8
/** Any number that no other program uses as an advisory lock in the same database. */
const migrationLock = 7_236_582_401
const bigintOid = 20

/** Our 64-bit columns are times, counters and keys, all below 2^53. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format: 'text' | 'binary') =>
    oid === bigintOid ? Number : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
}

const beginnings: Readonly<Record<Durability, string>> = {
  now: 'begin',
  soon: 'begin; set local synchronous_commit = off',
}

/** A PostgreSQL database, by a pool of connections that are made when they are needed. */
export class PostgresClient implements SqlClient {
  readonly dialect = 'postgres'
  readonly #pool: pg.Pool
  readonly #allDone = Promise.withResolvers<void>()
  /** Seals what is appended to the audit. */
  readonly seal: AuditSeal | undefined
  #underWay = 0
  #closed = false

  constructor(url: string, log: Logger, seal?: AuditSeal) {
    this.seal = seal
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: 'gatehouse',
      max: 16,
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 30_000,
      statement_timeout: 30_000,
      lock_timeout: 15_000,
      idle_in_transaction_session_timeout: 60_000,
      query_timeout: 45_000,
      keepAlive: true,
      types,
    })
    // Between two statements of a transaction a loss has nobody to be told to; the next statement tells it.
    this.#pool.on('connect', (connection) => {
      connection.on('error', () => {})
    })
    this.#pool.on('error', (error) => log.warn('an idle database connection was lost', { error: error.message }))
  }

  query<R>(query: SqlQuery<R>): Promise<R[]> {
    return this.#counted(() => this.#read(query))
  }

  transaction<T>(work: (tx: SqlTransaction) => Promise<T>, durable: Durability = 'now'): Promise<T> {
    return this.#counted(() => this.#repeat(work, durable))
  }

  async #read<R>(query: SqlQuery<R>): Promise<R[]> {
    try {
      return await execute<R>(this.#pool, query)
    } catch (error) {
      if (!isConnectionLoss(error)) throw postgresError(error)
      // Reading is repeatable, and a pool may hold a connection that died while it was idle.
      try {
        return await execute<R>(this.#pool, query)
      } catch (again) {
        throw postgresError(again)
      }
    }
  }

  async #repeat<T>(work: (tx: SqlTransaction) => Promise<T>, durable: Durability): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(work, durable)
      } catch (error) {
        if (!isRetryable(error) || attempt >= maxAttempts) throw postgresError(error)
        await delay(Math.random() * 10 * 2 ** attempt)
      }
    }
  }

  owns(transaction: object): transaction is SqlTransaction {
    return transaction instanceof PostgresTransaction && transaction.client === this
  }

  migrate(plan: MigrationPlan): Promise<void> {
    return this.#counted(() => this.#runMigrations(plan))
  }

  #runMigrations(plan: MigrationPlan): Promise<void> {
    return this.#withConnection(beginnings.now, async (connection) => {
      await connection.query("set local lock_timeout = '60s'; set local statement_timeout = '10min'")
      await connection.query({ text: 'select pg_advisory_xact_lock($1)', values: [migrationLock] })
      await plan(new PostgresTransaction(this, connection), async (script) => {
        await connection.query(script)
      })
    }).catch((error: unknown) => {
      throw postgresError(error)
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
    if (this.#closed) throw closedError()
    this.#underWay++
    try {
      return await work()
    } finally {
      if (--this.#underWay === 0 && this.#closed) this.#allDone.resolve()
    }
  }

  #attempt<T>(work: (tx: SqlTransaction) => Promise<T>, durable: Durability): Promise<T> {
    return this.#withConnection(beginnings[durable], async (connection) => {
      const tx = new PostgresTransaction(this, connection)
      try {
        return await work(tx)
      } finally {
        tx.end()
      }
    })
  }

  /** Runs `work` between begin and commit; errors come out as the driver threw them. */
  async #withConnection<T>(begin: string, work: (connection: pg.PoolClient) => Promise<T>): Promise<T> {
    const connection = await this.#pool.connect()
    let broken = false
    try {
      await connection.query(begin)
      const result = await work(connection)
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
      connection.release(broken)
    }
  }
}

class PostgresTransaction implements SqlTransaction {
  readonly dialect = 'postgres'
  readonly client: PostgresClient
  readonly #connection: pg.PoolClient
  #open = true

  constructor(client: PostgresClient, connection: pg.PoolClient) {
    this.client = client
    this.#connection = connection
  }

  async query<R>(query: SqlQuery<R>): Promise<R[]> {
    return (await this.#execute(query)).rows as R[]
  }

  async run(query: SqlQuery<unknown>): Promise<number> {
    return (await this.#execute(query)).rowCount ?? 0
  }

  get seal(): AuditSeal | undefined {
    return this.client.seal
  }

  end(): void {
    this.#open = false
  }

  #execute(query: SqlQuery<unknown>): Promise<pg.QueryResult> {
    if (!this.#open) throw new GatewayError('INTERNAL', 'a statement came after its transaction had ended')
    return this.#connection.query(config(query))
  }
}

async function execute<R>(pool: pg.Pool, query: SqlQuery<R>): Promise<R[]> {
  return (await pool.query(config(query))).rows as R[]
}

/** A name makes the server keep the statement prepared on that connection; only the program's own have one. */
const config = ({ sql, params, name, asLists }: SqlQuery<unknown>): pg.QueryConfig => ({
  ...(name === undefined ? {} : { name }),
  ...(asLists === true ? { rowMode: 'array' } : {}),
  text: sql,
  values: params as unknown[],
})

const closedError = (): GatewayError => new GatewayError('SHUTTING_DOWN', 'the database is closed')
