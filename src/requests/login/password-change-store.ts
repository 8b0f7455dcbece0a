import { appendAudit } from '#audit/store/audit-chain.ts'
import { readNow } from '#database/database-time.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, deletedAtOnce, deleteInParts, inserted, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { type Identity, loginIdentity, storedIdentity } from '#identity/identity.ts'
import { secretHash } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import { insertMails } from '#mail/mail-store.ts'
import { endSessions, type SessionEnding } from '#requests/sessions/session-store.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'

const hourMillis = 3600_000
/** Longer than the cookie of a known device is valid. */
const changedForMillis = 100 * 24 * hourMillis
/** Distinguishes locks on users from other advisory locks. */
const linkLock = 21

/** A password that is being replaced, or can be: by a reset link, or by its owner without one. */
interface PasswordChange {
  readonly id: string
  /** The application that accepts the new password; no other may. */
  readonly form: string
  /** The user whose password it is. */
  readonly owner: Identity
  /** What the engine has to know of the entry. */
  readonly data: JsonObject
}

export interface ResetLink extends PasswordChange {
  /** The hash of the secret in the mail; the secret itself is not stored. */
  readonly tokenHash: string
  readonly validMillis: number
}

/**
 * The claim to write a new password and to report the outcome. Void once the lease has expired and another process
 * has claimed it.
 */
export interface ChangeClaim extends PasswordChange {
  readonly lease: number
}

/** What is committed with the outcome. */
export interface ChangeOutcome {
  readonly ending?: SessionEnding
  readonly mails?: readonly NewMail[]
  readonly audit: readonly AuditEntry[]
}

interface ChangeRow {
  readonly id: string
  readonly form: string
  readonly tokenHash: string | null
  readonly owner: Identity
  readonly data: string
  readonly state: 'open' | 'writing'
  readonly lease: number
  readonly created: number
  readonly expires: number
}

const claimed = ['id', 'form', 'owner', 'data', 'lease'] as const
type ClaimRow = Pick<ChangeRow, (typeof claimed)[number]>

/** Times are compared with the database's clock. */
export class PasswordChangeStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Adds a link with its mails, and invalidates earlier links of the same user. `too many`, and nothing is added, when
   * the user got `perHour` links in the last hour. One that was added before, by its id, is not added again.
   */
  async addLink(
    link: ResetLink,
    perHour: number,
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<'added' | 'too many'> {
    const { tokenHash, validMillis, owner } = link
    return await this.#client.transaction(async (tx) => {
      // Transactions of one user follow one another, so that the count is right.
      await lockUser.all(tx, { owner })
      if ((await findId.first(tx, { id: link.id })) !== undefined) return 'added'
      if ((await findRecent.all(tx, { owner })).length >= perHour) return 'too many'
      await voidLinksOf.run(tx, { owner, except: '' })
      const now = await readNow(tx)
      const times = { lease: 0, created: now, expires: now + validMillis }
      await insert.run(tx, { ...newRow(link), tokenHash, state: 'open', ...times })
      await insertMails(tx, mails, now)
      await appendAudit(tx, audit)
      return 'added'
    })
  }

  /** The link of the secret; undefined if it was used, replaced or has expired. */
  async findLink(form: string, tokenHash: string): Promise<PasswordChange | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const row = await findLink.first(this.#client, { form, tokenHash })
    return row && fromRow(row)
  }

  /** Claims a link for writing. Undefined if another process has claimed it, or as for `findLink`. */
  async claimLink(form: string, tokenHash: string, leaseMillis: number): Promise<ChangeClaim | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const values = { form, tokenHash, millis: leaseMillis }
    const row = await this.#client.transaction((tx) => claimLink.first(tx, values))
    return row && fromRow(row)
  }

  /** Records that a password is about to be written without a link. */
  async begin(change: PasswordChange, leaseMillis: number): Promise<ChangeClaim> {
    return await this.#client.transaction(async (tx) => {
      const created = await readNow(tx)
      const lease = created + leaseMillis
      await insert.run(tx, { ...newRow(change), tokenHash: null, state: 'writing', created, expires: lease, lease })
      return { ...change, lease }
    })
  }

  /**
   * The password was written: the link is used, other links of the user become void, sessions end. Returns how many
   * sessions ended. The outcome is committed even if the claim is void.
   */
  async finish(claim: ChangeClaim, outcome: ChangeOutcome): Promise<number> {
    return await this.#client.transaction(async (tx) => {
      await markUsed.run(tx, { id: claim.id, lease: claim.lease })
      await voidLinksOf.run(tx, { owner: claim.owner, except: '' })
      return await commitOutcome(tx, outcome)
    })
  }

  /**
   * The password was not written, or that is unknown: the link can be used again. If sessions end, other links of
   * the user become void. Nothing is committed if the claim is void.
   */
  async release(claim: ChangeClaim, outcome: ChangeOutcome): Promise<void> {
    await this.#client.transaction(async (tx) => {
      const released = await reopen.run(tx, { id: claim.id, lease: claim.lease })
      if (released === 0) return
      if (outcome.ending !== undefined) await voidLinks(tx, outcome.ending.owners, claim.id)
      await commitOutcome(tx, outcome)
    })
  }

  /**
   * Changes whose process ended without a report, oldest first, at most this many. `all` includes those whose lease has not
   * expired: for a process that starts and knows that no other is running.
   */
  async abandoned(limit: number, which: 'expired' | 'all' = 'expired'): Promise<readonly ChangeClaim[]> {
    const find = which === 'all' ? findWriting : findAbandoned
    return (await find.all(this.#client, { limit })).map(fromRow)
  }

  /** When sessions last ended because the password of one of these was, or may have been, written; for 100 days. */
  async changedAt(owners: readonly Identity[]): Promise<Date | undefined> {
    const times: number[] = []
    for (const owner of owners) {
      const row = await findChanged.first(this.#client, { id: changedId(owner) })
      if (row !== undefined) times.push(row.created)
    }
    return times.length === 0 ? undefined : new Date(Math.max(...times))
  }

  /** Removes what expired more than an hour ago; returns how many. */
  async deleteExpired(): Promise<number> {
    return await deleteInParts(this.#client, deleteExpired, {})
  }
}

/** One row per user records when the password was last changed. It is neither a link nor a change that is being written. */
const changedId = (owner: Identity): string => `changed ${secretHash(owner)}`

/** Ends sessions as part of the transaction, and records for known devices that the password was changed. */
export async function endAfterPassword(tx: DatabaseTransaction, ending: SessionEnding): ReturnType<typeof endSessions> {
  if (ending.settles !== undefined) await markUsed.run(tx, ending.settles)
  const owners = ending.owners.length > 0 ? ending.owners : ending.logins.map(loginIdentity)
  // In one order for all, so that no two transactions wait for each other.
  for (const owner of [...new Set(owners)].filter(isStorable).sort()) {
    await recordChanged.run(tx, { id: changedId(owner), owner })
  }
  return await endSessions(tx, ending)
}

/** The password was written in another way: reset links of the user no longer work, except the one with this id. */
export async function voidLinks(tx: DatabaseTransaction, owners: readonly Identity[], except = ''): Promise<void> {
  for (const owner of [...new Set(owners)].sort()) await voidLinksOf.run(tx, { owner, except })
}

/** Appends to the audit last: other transactions may wait for its head. */
async function commitOutcome(tx: DatabaseTransaction, { ending, mails = [], audit }: ChangeOutcome): Promise<number> {
  const sessions = ending === undefined ? { ended: [], audit: [] } : await endAfterPassword(tx, ending)
  if (mails.length > 0) await insertMails(tx, mails, await readNow(tx))
  await appendAudit(tx, [...audit, ...sessions.audit])
  return sessions.ended.length
}

function newRow({ id, form, owner, data }: PasswordChange): Pick<ChangeRow, 'id' | 'form' | 'owner' | 'data'> {
  assertStorable('form', form)
  return { id, form, owner, data: JSON.stringify(data) }
}

const fromRow = ({ owner, data, ...same }: ClaimRow): ChangeClaim => ({
  ...same,
  owner: storedIdentity(owner),
  data: JSON.parse(data) as JsonObject,
})

/** PostgreSQL has no row to lock for a user's first link. SQLite has one writer at a time. */
const lockUser = statement<{ owner: Identity }, unknown>((on) =>
  on.name === 'postgres' ? `select pg_advisory_xact_lock(hashtextextended(:owner, ${linkLock}))` : `select :owner`,
)
const findId = statement<{ id: string }, { id: string }>('select id from password_changes where id = :id')
const findRecent = statement<{ owner: Identity }, { id: string }>(
  (on) => `select id from password_changes
    where owner = :owner and token_hash is not null and created > ${on.now} - ${hourMillis}`,
)
/** A link that is being used stays until its outcome is reported, but can't be used again: it has expired. */
const voidLinksOf = statement<{ owner: Identity; except: string }>(
  (on) => `update password_changes
    set state = case when state = 'open' then 'replaced' else state end,
      expires = case when expires < ${on.now} then expires else ${on.now} end
    where owner = :owner and id <> :except and token_hash is not null and state in ('open', 'writing')`,
)
const insert = statement<ChangeRow>(
  `insert into password_changes ${inserted([...claimed, 'tokenHash', 'state', 'created', 'expires'])}`,
)
const findLink = statement<{ form: string; tokenHash: string }, ClaimRow>(
  (on) => `select ${columns(claimed)} from password_changes
    where token_hash = :tokenHash and form = :form and state in ('open', 'writing') and expires > ${on.now}`,
)
const claimLink = statement<{ form: string; tokenHash: string; millis: number }, ClaimRow>(
  (on) => `update password_changes set state = 'writing', lease = ${on.now} + cast(:millis as bigint)
    where token_hash = :tokenHash and form = :form and expires > ${on.now}
      and (state = 'open' or (state = 'writing' and lease <= ${on.now}))
    returning ${columns(claimed)}`,
)
const markUsed = statement<{ id: string; lease: number }>(
  `update password_changes set state = 'used' where id = :id and state = 'writing' and lease = :lease`,
)
const reopen = statement<{ id: string; lease: number }>(
  `update password_changes set state = case when token_hash is null then 'used' else 'open' end
   where id = :id and state = 'writing' and lease = :lease`,
)
const recordChanged = statement<{ id: string; owner: Identity }>(
  (on) => `insert into password_changes (id, form, token_hash, owner, data, state, lease, created, expires)
    values (:id, '', null, :owner, '{}', 'used', 0, ${on.now}, ${on.now} + ${changedForMillis})
    on conflict (id) do update set created = excluded.created, expires = excluded.expires`,
)
const findChanged = statement<{ id: string }, { created: number }>(
  `select created from password_changes where id = :id`,
)
const findWriting = statement<{ limit: number }, ClaimRow>(
  `select ${columns(claimed)} from password_changes where state = 'writing' order by lease limit :limit`,
)
const findAbandoned = statement<{ limit: number }, ClaimRow>(
  (on) => `select ${columns(claimed)} from password_changes
    where state = 'writing' and lease <= ${on.now} order by lease limit :limit`,
)
const deleteExpired = statement(
  (on) => `delete from password_changes where id in
    (select id from password_changes
     where expires <= ${on.now} - ${hourMillis} and state <> 'writing' limit ${deletedAtOnce})`,
)
