import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { type Session, type SessionStore, sessionExpiry, touchEverySeconds } from '#storage/session-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import type { SqlClient, SqlDialect } from '#storage/sql/sql-client.ts'
import { assertStorable, isStorable, lookupKey } from '#storage/sql/text-keys.ts'

interface SessionRow {
  readonly id: string
  readonly application: string
  readonly user_id: string
  readonly data: string
  readonly created: number
  readonly touched: number
  readonly idle_seconds: number
  readonly ends: number | null
}

interface NewRow extends SessionRow {
  readonly user_key: string
  readonly expires: number
}

type Change = Pick<NewRow, 'id' | 'data' | 'idle_seconds' | 'expires'>

const columns = ['id', 'application', 'user_id', 'data', 'created', 'touched', 'idle_seconds', 'ends'] as const
/** How many expired sessions one transaction removes, so that others do not wait long. */
const collectAtOnce = 1000

const statements = perDialect((dialect) => ({
  insert: fixed<NewRow, unknown>(dialect, (db, at) =>
    db.insertInto('sessions').values({
      id: at('id'),
      application: at('application'),
      user_id: at('user_id'),
      user_key: at('user_key'),
      data: at('data'),
      created: at('created'),
      touched: at('touched'),
      idle_seconds: at('idle_seconds'),
      ends: at('ends'),
      expires: at('expires'),
    }),
  ),
  find: selectLive(dialect, false),
  findForUpdate: selectLive(dialect, true),
  touch: fixed<{ id: string; now: number; expires: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('sessions')
      .set({ touched: at('now'), expires: at('expires') })
      .where('id', '=', at('id'))
      .where('expires', '>', at('now'))
      .where('touched', '<', at('now')),
  ),
  change: fixed<Change, unknown>(dialect, (db, at) =>
    db
      .updateTable('sessions')
      .set({ data: at('data'), idle_seconds: at('idle_seconds'), expires: at('expires') })
      .where('id', '=', at('id')),
  ),
  delete: fixed<{ id: string }, unknown>(dialect, (db, at) => db.deleteFrom('sessions').where('id', '=', at('id'))),
  deleteOfUser: fixed<{ user_key: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('sessions').where('user_key', '=', at('user_key')),
  ),
  deleteExpired: fixed<{ now: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('sessions')
      .where('id', 'in', (query) =>
        query
          .selectFrom('sessions')
          .select('id')
          .where('expires', '<=', at('now'))
          .orderBy('expires')
          .orderBy('id')
          .limit(collectAtOnce),
      ),
  ),
}))

function selectLive(dialect: SqlDialect, lock: boolean) {
  return fixed<{ id: string; now: number }, SessionRow>(dialect, (db, at) => {
    const query = db.selectFrom('sessions').select(columns).where('id', '=', at('id')).where('expires', '>', at('now'))
    return lock && dialect === 'postgres' ? query.forUpdate() : query
  })
}

export class SqlSessionStore implements SessionStore {
  readonly #client: SqlClient
  readonly #statements: ReturnType<typeof statements>

  constructor(client: SqlClient) {
    this.#client = client
    this.#statements = statements(client.dialect)
  }

  async create(session: Session): Promise<void> {
    assertStorable('session id', session.id)
    assertStorable('application', session.application)
    assertStorable('login', session.userID)
    try {
      await this.#client.transaction((tx) => tx.run(this.#statements.insert(toRow(session))))
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'a session with this id exists', { cause: error })
    }
  }

  async find(id: string, now: Date): Promise<Session | undefined> {
    if (!isStorable(id)) return undefined
    const [row] = await this.#client.query(this.#statements.find({ id, now: now.getTime() }))
    return row === undefined ? undefined : fromRow(row)
  }

  async touch(session: Session, now: Date): Promise<void> {
    const interval = Math.min(touchEverySeconds, session.idleSeconds / 10) * 1000
    if (now.getTime() - session.touched.getTime() < interval) return
    const expires = sessionExpiry({ ...session, touched: now }).getTime()
    await this.#client.transaction((tx) =>
      tx.run(this.#statements.touch({ id: session.id, now: now.getTime(), expires })),
    )
  }

  async update(
    id: string,
    now: Date,
    change: (session: Session) => Pick<Session, 'data' | 'idleSeconds'>,
  ): Promise<Session | undefined> {
    if (!isStorable(id)) return undefined
    return await this.#client.transaction(async (tx) => {
      const [row] = await tx.query(this.#statements.findForUpdate({ id, now: now.getTime() }))
      if (row === undefined) return undefined
      const old = fromRow(row)
      const { data, idleSeconds } = change(old)
      const changed: Session = { ...old, data, idleSeconds }
      await tx.run(this.#statements.change(toRow(changed)))
      return changed
    })
  }

  async delete(id: string): Promise<boolean> {
    if (!isStorable(id)) return false
    return (await this.#client.transaction((tx) => tx.run(this.#statements.delete({ id })))) > 0
  }

  async deleteOfUser(userID: string): Promise<number> {
    if (!isStorable(userID)) return 0
    return await this.#client.transaction((tx) =>
      tx.run(this.#statements.deleteOfUser({ user_key: lookupKey(userID) })),
    )
  }

  async deleteExpired(now: Date): Promise<number> {
    let deleted = 0
    for (;;) {
      const query = this.#statements.deleteExpired({ now: now.getTime() })
      const some = await this.#client.transaction((tx) => tx.run(query))
      deleted += some
      if (some < collectAtOnce) return deleted
    }
  }
}

function toRow(session: Session): NewRow {
  return {
    id: session.id,
    application: session.application,
    user_id: session.userID,
    user_key: lookupKey(session.userID),
    data: JSON.stringify(session.data),
    created: session.created.getTime(),
    touched: session.touched.getTime(),
    idle_seconds: session.idleSeconds,
    ends: session.ends?.getTime() ?? null,
    expires: sessionExpiry(session).getTime(),
  }
}

function fromRow(row: SessionRow): Session {
  return {
    id: row.id,
    application: row.application,
    userID: row.user_id,
    data: JSON.parse(row.data) as JsonObject,
    created: new Date(row.created),
    touched: new Date(row.touched),
    idleSeconds: row.idle_seconds,
    ...(row.ends === null ? {} : { ends: new Date(row.ends) }),
  }
}
