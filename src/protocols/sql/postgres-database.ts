import type pg from 'pg'
import type { Sql } from 'sql-template-tag'
import { GatewayError } from '#kernel/errors.ts'
import { PostgresPool } from '#protocols/sql/postgres.ts'
import { readPostgresAddress } from '#protocols/sql/postgres-address.ts'
import {
  compileSql,
  type SqlDatabase,
  type SqlDatabaseOptions,
  type SqlRow,
  type SqlStatement,
  type SqlTransaction,
} from '#protocols/sql/sql-database.ts'

/** Every column is read as the text that PostgreSQL writes for it. */
const asText: pg.CustomTypesConfig = {
  getTypeParser: (() => (text: unknown) => text) as pg.CustomTypesConfig['getTypeParser'],
}

/** Of the rows of one `read`, which are all in memory. */
const mostBytes = 64 << 20

export class PostgresDatabase implements SqlDatabase {
  readonly dialect = 'postgres'
  readonly #pool: PostgresPool

  constructor({ url, user, password, timeoutMillis, maxConnections, onIdleLoss }: SqlDatabaseOptions) {
    this.#pool = new PostgresPool({
      url: withAccount(url, user, password),
      owner: 'foreign',
      maxConnections,
      connectMillis: timeoutMillis,
      statementMillis: timeoutMillis,
      lockMillis: timeoutMillis,
      idleInTransactionMillis: 2 * timeoutMillis,
      answerMillis: timeoutMillis + 1000,
      types: asText,
      onIdleLoss,
    })
  }

  async query(statement: Sql | SqlStatement): Promise<readonly SqlRow[]> {
    return (await this.#pool.query(config(statement))).rows as SqlRow[]
  }

  async read(statement: SqlStatement): Promise<readonly SqlRow[]> {
    const { rows, fields } = await this.#pool.readAlone(config(statement), mostBytes)
    const names = fields.map(({ name }) => name)
    const twice = names.find((name, i) => names.indexOf(name) < i)
    if (twice === undefined) return rows as SqlRow[]
    throw new GatewayError('TARGET_FAILED', `two columns are named "${twice}": name each differently, with "as"`)
  }

  transaction<T>(work: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#pool.transaction(({ execute }) =>
      work({
        dialect: 'postgres',
        query: async (statement) => (await execute(config(statement))).rows as SqlRow[],
        run: async (statement) => (await execute(config(statement))).rowCount ?? 0,
      }),
    )
  }

  async check({ sql, params }: SqlStatement): Promise<void> {
    if (!/^\s*(?:select|insert|update|delete|with|values)\b/i.test(sql)) return
    await this.#pool.query(config({ sql: `explain ${sql}`, params })).catch((error: unknown) => {
      // The values are made up, so an error about a value says nothing about the statement.
      const cause: unknown = Reflect.get(Object(error), 'cause')
      if (!/^2[23]/.test(String(Reflect.get(Object(cause), 'code')))) throw error
    })
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}

/** In the extended protocol a text is one statement, and can't be several. */
function config(statement: Sql | SqlStatement): pg.QueryConfig & { readonly queryMode: 'extended' } {
  const { sql, params } = compileSql(statement, 'postgres')
  return { text: sql, values: params as unknown[], queryMode: 'extended' }
}

function withAccount(url: string, user: string | undefined, password: string | undefined): string {
  if (user === undefined && password === undefined) return url
  const first = new URL(readPostgresAddress(url).servers[0]?.url ?? url)
  if (user !== undefined) first.username = encodeURIComponent(user)
  if (password !== undefined) first.password = encodeURIComponent(password)
  const { username, password: secret } = first
  return url.replace(/^(\w+:\/\/)(?:[^/?#]*@)?/, (_, scheme) => `${scheme}${username}:${secret}@`)
}
