import { appendAudit } from '#audit/store/audit-chain.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, deletedAtOnce, deleteInParts, inserted, ListStatement, statement } from '#database/statement.ts'
import { assertStorable, isStorable, lookupKey } from '#database/text-keys.ts'
import { type Identity, storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { type EndedSession, type Session, sessionExpiry, touchEverySeconds } from './session.ts'

/** How many of a user's sessions are listed. */
const maxListedSessions = 100
/** How many sessions one user has at a time. */
export const maxSessionsPerUser = 1_000

interface SessionRow extends Pick<Session, 'id' | 'publicId' | 'context' | 'application' | 'idleSeconds'> {
  readonly userId: string
  readonly userKey: Identity
  readonly loginKey: string
  readonly data: string
  readonly created: number
  readonly touched: number
  readonly ends: number | null
  readonly expires: number
}

const stored = [
  'id',
  'publicId',
  'context',
  'application',
  'userId',
  'userKey',
  'data',
  'created',
  'touched',
  'idleSeconds',
  'ends',
] as const
const session = columns(stored)
type StoredSession = Pick<SessionRow, (typeof stored)[number]>

/** Sessions that end together, with their audit data. */
export interface SessionEnding {
  /** The users whose sessions end. */
  readonly owners: readonly Identity[]
  /** If no owner is named: the logins whose sessions end, in any letter case. */
  readonly logins: readonly string[]
  /** The public id of a session that stays. */
  readonly exceptPublicId?: string | undefined
  /** The password change that was recorded before the password was written, and ends with this. */
  readonly settles?: { readonly id: string; readonly lease: number } | undefined
  audit(ended: readonly EndedSession[]): readonly AuditEntry[]
}

export class SessionStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Throws CONFLICT when the id exists. The session that it replaces, by its id, ends with the same commit. So do others of
   * the owner beyond `maxSessionsPerUser`: first those that were never used again, as programs leave them, then the ones
   * that were not used for the longest.
   */
  async create(session: Session, replaces?: string): Promise<void> {
    assertStorable('session id', session.id)
    assertStorable('application', session.application)
    assertStorable('login', session.userID)
    try {
      await this.#client.transaction(async (tx) => {
        if (replaces !== undefined) await deleteById.run(tx, { id: replaces })
        await insert.run(tx, toRow(session))
        const owner = { userKey: session.owner }
        if ((await tooMany.first(tx, owner)) !== undefined) await trim.run(tx, owner)
      })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'a session with this id exists', { cause: error })
    }
  }

  /** Undefined when absent or expired; an expired session is never returned, collected or not. */
  async find(id: string, now: Date): Promise<Session | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findById.first(this.#client, { id, now: now.getTime() })
    return row && fromRow(row)
  }

  /**
   * Records that a session just found is in use, which postpones its expiry; writes nothing if that was recorded
   * less than `touchEverySeconds` (or a tenth of the idle time) ago. Never restores a deleted or expired session.
   */
  async touch(session: Session, now: Date): Promise<void> {
    const interval = Math.min(touchEverySeconds, session.idleSeconds / 10) * 1000
    if (now.getTime() - session.touched.getTime() < interval) return
    const expires = sessionExpiry({ ...session, touched: now }).getTime()
    await this.#client.transaction((tx) => touch.run(tx, { id: session.id, now: now.getTime(), expires }))
  }

  /**
   * Replaces the session's data and idle time with the result of `change`, atomically against other updates.
   * `change` may run more than once, so it must be pure. Undefined if absent or expired.
   */
  async update(
    id: string,
    now: Date,
    change: (session: Session) => Pick<Session, 'data' | 'idleSeconds'>,
  ): Promise<Session | undefined> {
    if (!isStorable(id)) return undefined
    return await this.#client.transaction(async (tx) => {
      const row = await findForUpdate.first(tx, { id, now: now.getTime() })
      if (row === undefined) return undefined
      const old = fromRow(row)
      const { data, idleSeconds } = change(old)
      const changed: Session = { ...old, data, idleSeconds }
      await replaceData.run(tx, toRow(changed))
      return changed
    })
  }

  /** False when there was none. */
  async delete(id: string): Promise<boolean> {
    if (!isStorable(id)) return false
    return (await this.#client.transaction((tx) => deleteById.run(tx, { id }))) > 0
  }

  /** Undefined when absent or expired. */
  async findPublic(publicId: string, now: Date): Promise<Session | undefined> {
    if (!isStorable(publicId)) return undefined
    const row = await findByPublicId.first(this.#client, { publicId, now: now.getTime() })
    return row && fromRow(row)
  }

  /** Latest first. */
  async ofOwner(owner: Identity, now: Date): Promise<readonly Session[]> {
    return (await findByOwner.all(this.#client, { userKey: owner, now: now.getTime() })).map(fromRow)
  }

  /** A text for each owner with a session, which changes when a session of the owner begins or ends. */
  async fingerprints(owners: readonly Identity[], now: Date): Promise<ReadonlyMap<Identity, string>> {
    const rows = await countByOwner.all(this.#client, { now: now.getTime() }, owners)
    return new Map(rows.map(({ userKey, count, latest }) => [userKey, `${count} ${latest}`]))
  }

  /** False when the owner has no session of that public id. */
  async deletePublic(owner: Identity, publicId: string): Promise<boolean> {
    if (!isStorable(publicId)) return false
    return (await this.#client.transaction((tx) => deleteByPublicId.run(tx, { userKey: owner, publicId }))) > 0
  }

  /** Ends every session of the owner in all applications, except the one with that public id; returns how many. */
  async deleteOfOwner(owner: Identity, exceptPublicId = ''): Promise<number> {
    if (!isStorable(exceptPublicId)) return 0
    const ended = await this.#client.transaction((tx) => endOfOwner.all(tx, { userKey: owner, except: exceptPublicId }))
    return ended.length
  }

  /**
   * Ends the owner's session of that public id, or all sessions without one, together with the audit entries about
   * them; returns how many. Leaves expired ones, which have ended already.
   */
  async endAudited(
    owner: Identity,
    publicId: string | undefined,
    now: Date,
    audit: (ended: readonly EndedSession[]) => readonly AuditEntry[],
  ): Promise<number> {
    if (!isStorable(publicId ?? '')) return 0
    return await this.#client.transaction(async (tx) => {
      const ended =
        publicId === undefined
          ? await endLive.all(tx, { userKey: owner, now: now.getTime() })
          : await endLiveOne.all(tx, { userKey: owner, publicId, now: now.getTime() })
      if (ended.length > 0) await appendAudit(tx, audit(ended))
      return ended.length
    })
  }

  /** The session of that public id ends with `deleteMarked`. The mark is stored until the given time. */
  async mark(publicId: string, mark: string, until: Date): Promise<void> {
    assertStorable('mark', mark)
    await this.#client.transaction((tx) => insertMark.run(tx, { mark, publicId, expires: until.getTime() }))
  }

  /** Ends the sessions with the mark; returns how many. */
  async deleteMarked(mark: string): Promise<number> {
    if (!isStorable(mark)) return 0
    return await this.#client.transaction(async (tx) => {
      const ended = await deleteByMark.run(tx, { mark })
      await deleteMark.run(tx, { mark })
      return ended
    })
  }

  /** Removes what has expired; returns how many sessions. */
  async deleteExpired(now: Date): Promise<number> {
    const until = { now: now.getTime() }
    await this.#client.transaction((tx) => deleteExpiredMarks.run(tx, until))
    return await deleteInParts(this.#client, deleteExpired, until)
  }
}

/** Ends sessions as part of the transaction. Returns them, and the audit rows, which the caller writes. */
export async function endSessions(
  tx: DatabaseTransaction,
  ending: SessionEnding,
): Promise<{ readonly ended: readonly EndedSession[]; readonly audit: readonly AuditEntry[] }> {
  const except = ending.exceptPublicId ?? ''
  const logins = ending.owners.length > 0 ? [] : ending.logins.filter(isStorable).map(lookupKey)
  const ended: EndedSession[] = []
  // In one order for all, so that no two transactions wait for each other.
  for (const userKey of [...new Set(ending.owners)].sort())
    ended.push(...(await endOfOwner.all(tx, { userKey, except })))
  for (const loginKey of [...new Set(logins)].sort()) ended.push(...(await endOfLogin.all(tx, { loginKey, except })))
  return { ended, audit: ended.length === 0 ? [] : ending.audit(ended) }
}

const toRow = (session: Session): SessionRow => ({
  id: session.id,
  publicId: session.publicId,
  context: session.context,
  application: session.application,
  userId: session.userID,
  userKey: session.owner,
  loginKey: lookupKey(session.userID),
  data: JSON.stringify(session.data),
  created: session.created.getTime(),
  touched: session.touched.getTime(),
  idleSeconds: session.idleSeconds,
  ends: session.ends?.getTime() ?? null,
  expires: sessionExpiry(session).getTime(),
})

const fromRow = ({ userId, userKey, data, created, touched, ends, ...same }: StoredSession): Session => ({
  ...same,
  owner: storedIdentity(userKey),
  userID: userId,
  data: JSON.parse(data) as JsonObject,
  created: new Date(created),
  touched: new Date(touched),
  ...(ends === null ? {} : { ends: new Date(ends) }),
})

const insert = statement<SessionRow>(`insert into sessions ${inserted([...stored, 'loginKey', 'expires'])}`)

const findById = statement<{ id: string; now: number }, StoredSession>(
  `select ${session} from sessions where id = :id and expires > :now`,
)
const findForUpdate = statement<{ id: string; now: number }, StoredSession>(
  (on) => `select ${session} from sessions where id = :id and expires > :now ${on.forUpdate}`,
)
const findByPublicId = statement<{ publicId: string; now: number }, StoredSession>(
  `select ${session} from sessions where public_id = :publicId and expires > :now`,
)
const findByOwner = statement<{ userKey: Identity; now: number }, StoredSession>(
  `select ${session} from sessions where user_key = :userKey and expires > :now
   order by created desc, id limit ${maxListedSessions}`,
)
const countByOwner = new ListStatement<{ now: number }, Identity, { userKey: Identity; count: number; latest: number }>(
  `select user_key as "userKey", count(*) as count, max(created) as latest
   from sessions where user_key in (:list) and expires > :now group by user_key`,
)
const touch = statement<{ id: string; now: number; expires: number }>(
  `update sessions set touched = :now, expires = :expires where id = :id and expires > :now and touched < :now`,
)
const replaceData = statement<Pick<SessionRow, 'id' | 'data' | 'idleSeconds' | 'expires'>>(
  `update sessions set data = :data, idle_seconds = :idleSeconds, expires = :expires where id = :id`,
)

const deleteById = statement<{ id: string }>(`delete from sessions where id = :id`)
const deleteByPublicId = statement<{ userKey: Identity; publicId: string }>(
  `delete from sessions where public_id = :publicId and user_key = :userKey`,
)
const ended = `public_id as "publicId", application, user_id as "userID"`
const endOfOwner = statement<{ userKey: Identity; except: string }, EndedSession>(
  `delete from sessions where user_key = :userKey and public_id <> :except returning ${ended}`,
)
const endLive = statement<{ userKey: Identity; now: number }, EndedSession>(
  `delete from sessions where user_key = :userKey and expires > :now returning ${ended}`,
)
const endLiveOne = statement<{ userKey: Identity; publicId: string; now: number }, EndedSession>(
  `delete from sessions where public_id = :publicId and user_key = :userKey and expires > :now returning ${ended}`,
)
const endOfLogin = statement<{ loginKey: string; except: string }, EndedSession>(
  `delete from sessions where login_key = :loginKey and public_id <> :except returning ${ended}`,
)
const deleteExpired = statement<{ now: number }>(
  `delete from sessions where id in
     (select id from sessions where expires <= :now order by expires, id limit ${deletedAtOnce})`,
)

/** A row comes back where a user has more sessions than allowed. */
const tooMany = statement<{ userKey: Identity }, { id: string }>(
  `select id from sessions where user_key = :userKey limit 1 offset ${maxSessionsPerUser}`,
)
/** Deletes some more than necessary, so that not every login trims. Leaves rows that another transaction removes. */
const trim = statement<{ userKey: Identity }>(
  (on) => `delete from sessions where id in
    (select id from sessions where id in
      (select id from sessions where user_key = :userKey
       order by case when touched > created then 1 else 0 end desc, touched desc, id
       limit ${deletedAtOnce} offset ${Math.floor(maxSessionsPerUser * 0.9)})
     ${on.forUpdateSkipLocked})`,
)

const insertMark = statement<{ mark: string; publicId: string; expires: number }>(
  `insert into session_marks (mark, public_id, expires) values (:mark, :publicId, :expires)
   on conflict (mark, public_id) do nothing`,
)
const deleteByMark = statement<{ mark: string }>(
  `delete from sessions where public_id in (select public_id from session_marks where mark = :mark)`,
)
const deleteMark = statement<{ mark: string }>(`delete from session_marks where mark = :mark`)
const deleteExpiredMarks = statement<{ now: number }>(`delete from session_marks where expires <= :now`)
