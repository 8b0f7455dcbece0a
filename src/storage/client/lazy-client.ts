import type {
  Durability,
  MigrationPlan,
  SqlClient,
  SqlDialect,
  SqlQuery,
  SqlTransaction,
} from '#storage/client/sql-client.ts'

/**
 * A database that is connected to when it is first used. What fails then is thrown to whoever used it, and tried again
 * for the next one, so that a database that is down for a while needs no restart of ours.
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

  async transaction<T>(work: (tx: SqlTransaction) => Promise<T>, durable?: Durability): Promise<T> {
    return (this.#client ?? (await this.open())).transaction(work, durable)
  }

  owns(transaction: object): transaction is SqlTransaction {
    return this.#client?.owns(transaction) ?? false
  }

  async migrate(plan: MigrationPlan): Promise<void> {
    await (this.#client ?? (await this.open())).migrate(plan)
  }

  /** Connects now; the same connection serves everybody. */
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
