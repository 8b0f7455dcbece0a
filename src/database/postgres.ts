import pg from 'pg'
import type { Awaitable } from '#kernel/awaitable.ts'
import type { Logger } from '#kernel/logger.ts'
import { type Execution, PostgresPool } from '#protocols/sql/postgres.ts'
import type { AuditSeal } from './audit-seal.ts'
import type {
  DatabaseReader,
  DatabaseTransaction,
  Durability,
  MigrationPlan,
  PoolFigures,
  SqlClient,
  SqlQuery,
} from './sql-client.ts'

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

export class PostgresClient implements SqlClient {
  readonly dialect = 'postgres'
  readonly #pool: PostgresPool
  /** Seals what is appended to the audit. */
  readonly seal: AuditSeal | undefined

  constructor(url: string, log: Logger, seal?: AuditSeal) {
    this.seal = seal
    this.#pool = new PostgresPool({
      url,
      owner: 'own',
      maxConnections: 16,
      connectMillis: 5000,
      statementMillis: 30_000,
      lockMillis: 15_000,
      idleInTransactionMillis: 60_000,
      answerMillis: 45_000,
      pipeline: true,
      types,
      onIdleLoss: (error) => log.warn('an idle database connection was lost', { error: error.message }),
    })
  }

  get pool(): PoolFigures {
    return this.#pool.figures
  }

  async query<R>(query: SqlQuery<R>): Promise<R[]> {
    return (await this.#pool.query(config(query))).rows as R[]
  }

  transaction<T>(work: (tx: DatabaseTransaction) => Awaitable<T>, durable: Durability = 'now'): Promise<T> {
    return this.#pool.transaction((execution) => work(new PostgresTransaction(this, execution)), beginnings[durable])
  }

  owns(transaction: object): transaction is DatabaseTransaction {
    return transaction instanceof PostgresTransaction && transaction.client === this
  }

  migrate(plan: MigrationPlan): Promise<void> {
    return this.#pool.once(async (execution) => {
      const { execute } = execution
      await execute({ text: "set local lock_timeout = '60s'; set local statement_timeout = '10min'" })
      await execute({ text: 'select pg_advisory_xact_lock($1)', values: [migrationLock] })
      await plan(new PostgresTransaction(this, execution), async (script) => {
        await execute({ text: script })
      })
    })
  }

  /** Reads one state of the database, in a transaction that may wait for its reader for ten minutes. */
  snapshot<T>(work: (reader: DatabaseReader) => Promise<T>): Promise<T> {
    return this.#pool.once(async (execution) => {
      await execution.execute({ text: 'set transaction isolation level repeatable read, read only' })
      await execution.execute({ text: "set local idle_in_transaction_session_timeout = '10min'" })
      return await work(new PostgresTransaction(this, execution))
    })
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}

class PostgresTransaction implements DatabaseTransaction {
  readonly dialect = 'postgres'
  readonly client: PostgresClient
  readonly #execution: Execution

  constructor(client: PostgresClient, execution: Execution) {
    this.client = client
    this.#execution = execution
  }

  get seal(): AuditSeal | undefined {
    return this.client.seal
  }

  async query<R>(query: SqlQuery<R>): Promise<R[]> {
    return (await this.#execution.execute(config(query))).rows as R[]
  }

  async run(query: SqlQuery<unknown>): Promise<number> {
    return (await this.#execution.execute(config(query))).rowCount ?? 0
  }

  send(query: SqlQuery<unknown>): void {
    this.#execution.send(config(query))
  }
}

/** A name makes the server keep the statement prepared on that connection; only the program's own have one. */
const config = ({ sql, params, name, asLists }: SqlQuery<unknown>): pg.QueryConfig => ({
  name,
  ...(asLists === true ? { rowMode: 'array' } : {}),
  text: sql,
  values: params as unknown[],
})
