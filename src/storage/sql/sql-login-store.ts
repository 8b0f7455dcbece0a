import { GatewayError } from '#kernel/errors.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import { type Login, type LoginStore, loginsPerBrowser } from '#storage/login-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed } from '#storage/sql/queries.ts'

interface LoginRow {
  readonly id: string
  readonly browser: string
  readonly host: string
  readonly data: string
  readonly version: number
  readonly created: number
  readonly expires: number
}

interface Step {
  readonly id: string
  readonly version: number
  readonly now: number
}

const columns = ['id', 'browser', 'host', 'data', 'version', 'created', 'expires'] as const

const statements = perDialect((dialect) => ({
  insert: fixed<LoginRow, unknown>(dialect, (db, at) =>
    db.insertInto('logins').values({
      id: at('id'),
      browser: at('browser'),
      host: at('host'),
      data: at('data'),
      version: at('version'),
      created: at('created'),
      expires: at('expires'),
    }),
  ),
  /** All but the latest of a browser. */
  trim: fixed<{ browser: string }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('logins')
      .where('browser', '=', at('browser'))
      .where('id', 'not in', (query) =>
        query
          .selectFrom('logins')
          .select('id')
          .where('browser', '=', at('browser'))
          .orderBy('created', 'desc')
          .orderBy('id')
          .limit(loginsPerBrowser),
      ),
  ),
  find: fixed<{ id: string; browser: string; host: string; now: number }, LoginRow>(dialect, (db, at) =>
    db
      .selectFrom('logins')
      .select(columns)
      .where('id', '=', at('id'))
      .where('browser', '=', at('browser'))
      .where('host', '=', at('host'))
      .where('expires', '>', at('now')),
  ),
  advance: fixed<Step & { data: string }, unknown>(dialect, (db, at) =>
    db
      .updateTable('logins')
      .set(({ eb }) => ({ data: at('data'), version: eb('version', '+', 1) }))
      .where('id', '=', at('id'))
      .where('version', '=', at('version'))
      .where('expires', '>', at('now')),
  ),
  finish: fixed<Step, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('logins')
      .where('id', '=', at('id'))
      .where('version', '=', at('version'))
      .where('expires', '>', at('now')),
  ),
  knows: fixed<{ browser: string; now: number }, { id: string }>(dialect, (db, at) =>
    db.selectFrom('logins').select('id').where('browser', '=', at('browser')).where('expires', '>', at('now')).limit(1),
  ),
  prune: fixed<{ now: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('logins')
      .where('id', 'in', (query) =>
        query.selectFrom('logins').select('id').where('expires', '<=', at('now')).limit(pruneAtOnce),
      ),
  ),
}))

export class SqlLoginStore implements LoginStore {
  readonly #client: SqlClient
  readonly #statements: ReturnType<typeof statements>

  constructor(client: SqlClient) {
    this.#client = client
    this.#statements = statements(client.dialect)
  }

  async create(login: Login): Promise<void> {
    assertStorable('host', login.host)
    const row = { ...login, created: login.created.getTime(), expires: login.expires.getTime() }
    try {
      await this.#client.transaction(async (tx) => {
        await tx.run(this.#statements.insert(row))
        await tx.run(this.#statements.trim({ browser: login.browser }))
      })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'a login with this id exists', { cause: error })
    }
  }

  async find({ id, browser, host }: Pick<Login, 'id' | 'browser' | 'host'>, now: Date): Promise<Login | undefined> {
    if (!isStorable(id) || !isStorable(host)) return undefined
    const [row] = await this.#client.query(this.#statements.find({ id, browser, host, now: now.getTime() }))
    return row === undefined ? undefined : { ...row, created: new Date(row.created), expires: new Date(row.expires) }
  }

  async advance(id: string, version: number, data: string, now: Date): Promise<boolean> {
    const query = this.#statements.advance({ id, version, data, now: now.getTime() })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async finish(id: string, version: number, now: Date): Promise<boolean> {
    const query = this.#statements.finish({ id, version, now: now.getTime() })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async knows(browser: string, now: Date): Promise<boolean> {
    return (await this.#client.query(this.#statements.knows({ browser, now: now.getTime() }))).length > 0
  }

  deleteExpired(now: Date): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({ now: now.getTime() }))
  }
}
