import { type Identity, storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import {
  type EndedSession,
  type Session,
  type SessionEnding,
  type SessionStore,
  sessionExpiry,
  touchEverySeconds,
} from '#storage/session-store.ts'
import {
  collectAtOnce,
  type NewSessionRow,
  type SessionRow,
  sessionStatements,
} from '#storage/sql/session-statements.ts'
import type { SqlClient, SqlTransaction } from '#storage/sql/sql-client.ts'
import { assertStorable, isStorable, lookupKey } from '#storage/sql/text-keys.ts'

export class SqlSessionStore implements SessionStore {
  readonly #client: SqlClient
  readonly #statements: ReturnType<typeof sessionStatements>

  constructor(client: SqlClient) {
    this.#client = client
    this.#statements = sessionStatements(client.dialect)
  }

  async create(session: Session, replaces?: string): Promise<void> {
    assertStorable('session id', session.id)
    assertStorable('application', session.application)
    assertStorable('login', session.userID)
    try {
      await this.#client.transaction(async (tx) => {
        if (replaces !== undefined) await tx.run(this.#statements.delete({ id: replaces }))
        await tx.run(this.#statements.insert(toRow(session)))
        const user = { user_key: session.owner }
        const tooMany = await tx.query(this.#statements.tooMany(user))
        if (tooMany.length > 0) await tx.run(this.#statements.trim(user))
      })
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

  async findPublic(publicId: string, now: Date): Promise<Session | undefined> {
    if (!isStorable(publicId)) return undefined
    const [row] = await this.#client.query(this.#statements.findPublic({ public_id: publicId, now: now.getTime() }))
    return row === undefined ? undefined : fromRow(row)
  }

  async ofOwner(owner: Identity, now: Date): Promise<readonly Session[]> {
    const query = this.#statements.ofUser({ user_key: owner, now: now.getTime() })
    return (await this.#client.query(query)).map(fromRow)
  }

  async deletePublic(owner: Identity, publicId: string): Promise<boolean> {
    if (!isStorable(publicId)) return false
    const query = this.#statements.deletePublic({ user_key: owner, public_id: publicId })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async deleteOfOwner(owner: Identity, exceptPublicId = ''): Promise<number> {
    if (!isStorable(exceptPublicId)) return 0
    const query = this.#statements.deleteOfUser({ user_key: owner, except: exceptPublicId })
    return await this.#client.transaction((tx) => tx.run(query))
  }

  async mark(publicId: string, mark: string, until: Date): Promise<void> {
    assertStorable('mark', mark)
    const query = this.#statements.mark({ mark, public_id: publicId, expires: until.getTime() })
    await this.#client.transaction((tx) => tx.run(query))
  }

  async deleteMarked(mark: string): Promise<number> {
    if (!isStorable(mark)) return 0
    return await this.#client.transaction(async (tx) => {
      const ended = await tx.run(this.#statements.deleteMarked({ mark }))
      await tx.run(this.#statements.deleteMark({ mark }))
      return ended
    })
  }

  async deleteExpired(now: Date): Promise<number> {
    await this.#client.transaction((tx) => tx.run(this.#statements.deleteExpiredMarks({ now: now.getTime() })))
    let deleted = 0
    for (;;) {
      const query = this.#statements.deleteExpired({ now: now.getTime() })
      const some = await this.#client.transaction((tx) => tx.run(query))
      deleted += some
      if (some < collectAtOnce) return deleted
    }
  }
}

/** Ends sessions as part of the transaction; which, and the rows for the audit, which are yet to be written. */
export async function endSessions(
  tx: SqlTransaction,
  ending: SessionEnding,
): Promise<{ readonly ended: readonly EndedSession[]; readonly audit: readonly AuditRow[] }> {
  const { endOfOwner, endOfLogin } = sessionStatements(tx.dialect)
  const except = ending.exceptPublicId ?? ''
  const ended: EndedSession[] = []
  const end = async (query: ReturnType<typeof endOfOwner>): Promise<void> => {
    for (const row of await tx.query(query)) {
      ended.push({ publicId: row.public_id, application: row.application, userID: row.user_id })
    }
  }
  // In one order for all, so that no two transactions wait for each other.
  const logins = ending.owners.length > 0 ? [] : ending.logins.filter(isStorable).map(lookupKey)
  for (const owner of [...new Set(ending.owners)].sort()) await end(endOfOwner({ user_key: owner, except }))
  for (const login of [...new Set(logins)].sort()) await end(endOfLogin({ login_key: login, except }))
  return { ended, audit: ended.length === 0 ? [] : ending.audit(ended) }
}

function toRow(session: Session): NewSessionRow {
  return {
    id: session.id,
    public_id: session.publicId,
    context: session.context,
    application: session.application,
    user_id: session.userID,
    user_key: session.owner,
    login_key: lookupKey(session.userID),
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
    publicId: row.public_id,
    context: row.context,
    application: row.application,
    owner: storedIdentity(row.user_key),
    userID: row.user_id,
    data: JSON.parse(row.data) as JsonObject,
    created: new Date(row.created),
    touched: new Date(row.touched),
    idleSeconds: row.idle_seconds,
    ...(row.ends === null ? {} : { ends: new Date(row.ends) }),
  }
}
