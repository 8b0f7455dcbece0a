import { appendAudit } from '#audit/store/audit-chain.ts'
import { readNow } from '#database/database-time.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { columns, type DialectText, deletedAtOnce, deleteInParts, inserted, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import { insertMails } from '#mail/mail-store.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Invitation } from './invitation.ts'

const maxPage = 500
/** Sorts after every id. */
const afterAllIds = '~'
/** How long an expired invitation is still listed. */
const keptMillis = 90 * 24 * 3600_000

/** The scope of the idempotency keys with which registrations start their runs. */
export const reservationScope = 'gatehouse registration'

/** A registration whose mail address has to be confirmed. */
interface PendingRegistration {
  readonly id: string
  /** The application that received it. No other can continue it. */
  readonly form: string
  /** The hash of the secret in the mail; the secret itself is not stored. */
  readonly tokenHash: string
  /** The encrypted data. */
  readonly sealed: string
  readonly expires: Date
}

interface PendingRow extends Omit<PendingRegistration, 'expires'> {
  readonly expires: number
}

export type NewInvitation = Omit<Invitation, 'state' | 'sent'> & { readonly tokenHash: string }

interface InvitationQuery {
  readonly form: string
  /** The `next` of a page. */
  readonly after?: string | undefined
  /** At most 500 are returned. */
  readonly limit: number
}

interface InvitationPage {
  /** Latest first. */
  readonly invitations: readonly Invitation[]
  readonly next?: string
}

interface InvitationRow extends Omit<Invitation, 'attributes' | 'created' | 'expires'> {
  readonly tokenHash: string
  readonly attributes: string
  readonly created: number
  readonly expires: number
}

const listed = ['id', 'form', 'email', 'attributes', 'invitedBy', 'state', 'created', 'expires', 'sent'] as const
const invitation = columns(listed)
type ListedInvitation = Pick<InvitationRow, (typeof listed)[number]>

/** Reservations, pending registrations and invitations. Times are those of the database's clock. */
export class RegistrationStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Reserves all of the keys for an owner, or none; returns those that others have reserved. A reservation lasts
   * for the given time, and then until the run ends that `holdForRun` named, or that was started with the
   * idempotency key (`reservationScope`, owner).
   */
  async reserve(owner: string, keys: readonly string[], forMillis: number): Promise<readonly string[]> {
    // In one order for all, so that no two transactions wait for each other.
    const wanted = [...new Set(keys)].sort()
    if (wanted.length === 0) return []
    // Most late callers get their result here, without a lock that others would wait for.
    const reserved: string[] = []
    for (const key of wanted) {
      if ((await findOfOther.first(this.#client, { key, owner })) !== undefined) reserved.push(key)
    }
    if (reserved.length > 0) return reserved
    try {
      await this.#client.transaction(async (tx) => {
        const taken: string[] = []
        for (const key of wanted) {
          if ((await reserve.first(tx, { key, owner, millis: forMillis })) === undefined) taken.push(key)
        }
        if (taken.length > 0) throw new Taken(taken)
      })
      return []
    } catch (error) {
      if (error instanceof Taken) return error.keys
      throw error
    }
  }

  /** The owner's keys stay reserved until the run ends, and at least for the given time. */
  async holdForRun(owner: string, run: string, forMillis: number): Promise<void> {
    await this.#client.transaction((tx) => holdForRun.run(tx, { owner, run, millis: forMillis }))
  }

  /** Frees the owner's keys, except those that `holdForRun` keeps. */
  async release(owner: string): Promise<void> {
    await this.#client.transaction((tx) => release.run(tx, { owner }))
  }

  /** The registration and its mails are one transaction. */
  async addPending(pending: PendingRegistration, mails: readonly NewMail[]): Promise<void> {
    assertStorable('form', pending.form)
    const row = { ...pending, expires: pending.expires.getTime() }
    await this.#client.transaction(async (tx) => {
      await insertPending.run(tx, row)
      await insertMails(tx, mails, await readNow(tx))
    })
  }

  /** Undefined when absent or expired. */
  async findPending(form: string, tokenHash: string): Promise<PendingRegistration | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const row = await findPending.first(this.#client, { form, tokenHash })
    return row && { ...row, expires: new Date(row.expires) }
  }

  async removePending(id: string): Promise<void> {
    await this.#client.transaction((tx) => deletePending.run(tx, { id }))
  }

  /** The invitation, its mails and its audit rows are one transaction. */
  async addInvitation(added: NewInvitation, mails: readonly NewMail[], audit: readonly AuditEntry[]): Promise<void> {
    const { form, email, attributes, invitedBy, created, expires } = added
    for (const text of [form, email, invitedBy]) assertStorable('invitation', text)
    const row: InvitationRow = {
      ...added,
      attributes: JSON.stringify(attributes),
      state: 'open',
      created: created.getTime(),
      expires: expires.getTime(),
      sent: 1,
    }
    await this.#client.transaction(async (tx) => {
      await insertInvitation.run(tx, row)
      await insertMails(tx, mails, await readNow(tx))
      await appendAudit(tx, audit)
    })
  }

  /** The invitation that a secret opens, in any state; undefined when it has expired. */
  async findInvitation(form: string, tokenHash: string): Promise<Invitation | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const row = await findInvitation.first(this.#client, { form, tokenHash })
    return row && fromRow(row)
  }

  async getInvitation(form: string, id: string): Promise<Invitation | undefined> {
    if (!isStorable(form) || !isStorable(id)) return undefined
    const row = await findInvitationById.first(this.#client, { form, id })
    return row && fromRow(row)
  }

  async listInvitations({ form, after = afterAllIds, limit }: InvitationQuery): Promise<InvitationPage> {
    if (!isStorable(form) || !isStorable(after)) throw new GatewayError('BAD_REQUEST', 'not a page of invitations')
    const most = Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))
    const rows = await listInvitations.all(this.#client, { form, after, limit: most + 1 })
    const invitations = rows.slice(0, most).map(fromRow)
    const last = invitations.at(-1)
    return rows.length > most && last !== undefined ? { invitations, next: last.id } : { invitations }
  }

  /** An open invitation gets another secret, expiry and mail; the earlier secret becomes invalid. False when it is not open. */
  async renewInvitation(
    { id, tokenHash, expires }: { readonly id: string; readonly tokenHash: string; readonly expires: Date },
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<boolean> {
    return await this.#client.transaction(async (tx) => {
      if ((await renewInvitation.run(tx, { id, tokenHash, expires: expires.getTime() })) === 0) return false
      await insertMails(tx, mails, await readNow(tx))
      await appendAudit(tx, audit)
      return true
    })
  }

  /** True for the first of all callers that change an invitation from one state. */
  async moveInvitation(
    id: string,
    from: Invitation['state'],
    to: Invitation['state'],
    audit: readonly AuditEntry[],
  ): Promise<boolean> {
    return await this.#client.transaction(async (tx) => {
      if ((await moveInvitation.run(tx, { id, from, to })) === 0) return false
      await appendAudit(tx, audit)
      return true
    })
  }

  /** Deletes expired reservations and registrations, and invitations 90 days after their expiry; returns how many. */
  async deleteExpired(): Promise<number> {
    let deleted = 0
    for (const expired of [deleteExpiredReservations, deleteExpiredPending, deleteExpiredInvitations]) {
      deleted += await deleteInParts(this.#client, expired, {})
    }
    return deleted
  }
}

/** Rolls back the transaction that found it. */
class Taken extends Error {
  readonly keys: readonly string[]

  constructor(keys: readonly string[]) {
    super('reserved by others')
    this.keys = keys
  }
}

const fromRow = ({ attributes, created, expires, ...same }: ListedInvitation): Invitation => ({
  ...same,
  attributes: JSON.parse(attributes) as Record<string, string>,
  created: new Date(created),
  expires: new Date(expires),
})

/** A reservation that has not expired, or whose run has not ended. */
const isReserved = (on: DialectText): string => `(
  reservations.expires > ${on.now}
  or exists (select 1 from runs where runs.id = reservations.run and runs.ended is null)
  or exists (select 1 from idempotency join runs on runs.id = idempotency.run
    where idempotency.scope = '${reservationScope}' and idempotency.key = reservations.owner and runs.ended is null))`

const findOfOther = statement<{ key: string; owner: string }, { key: string }>(
  (on) => `select key from reservations where key = :key and owner <> :owner and ${isReserved(on)}`,
)
/** Returns a row if the owner has the key now. */
const reserve = statement<{ key: string; owner: string; millis: number }, { owner: string }>(
  (on) => `insert into reservations (key, owner, expires) values (:key, :owner, ${on.now} + cast(:millis as bigint))
    on conflict (key) do update set owner = excluded.owner, expires = excluded.expires,
      run = case when reservations.owner = excluded.owner then reservations.run else null end
    where reservations.owner = excluded.owner or not ${isReserved(on)}
    returning owner`,
)
const holdForRun = statement<{ owner: string; run: string; millis: number }>(
  (on) => `update reservations set run = :run, expires = ${on.now} + cast(:millis as bigint) where owner = :owner`,
)
const release = statement<{ owner: string }>(`delete from reservations where owner = :owner and run is null`)
const deleteExpiredReservations = statement(
  (on) => `delete from reservations where key in
    (select key from reservations where not ${isReserved(on)} limit ${deletedAtOnce})`,
)

const pending = ['id', 'form', 'tokenHash', 'sealed', 'expires'] as const
const insertPending = statement<PendingRow>(`insert into pending_registrations ${inserted(pending)}`)
const findPending = statement<{ form: string; tokenHash: string }, PendingRow>(
  (on) => `select ${columns(pending)} from pending_registrations
    where token_hash = :tokenHash and form = :form and expires > ${on.now}`,
)
const deletePending = statement<{ id: string }>(`delete from pending_registrations where id = :id`)
const deleteExpiredPending = statement(
  (on) => `delete from pending_registrations where id in
    (select id from pending_registrations where expires <= ${on.now} limit ${deletedAtOnce})`,
)

const insertInvitation = statement<InvitationRow>(`insert into invitations ${inserted([...listed, 'tokenHash'])}`)
const findInvitation = statement<{ form: string; tokenHash: string }, ListedInvitation>(
  (on) => `select ${invitation} from invitations
    where token_hash = :tokenHash and form = :form and expires > ${on.now}`,
)
const findInvitationById = statement<{ form: string; id: string }, ListedInvitation>(
  `select ${invitation} from invitations where id = :id and form = :form`,
)
const listInvitations = statement<{ form: string; after: string; limit: number }, ListedInvitation>(
  `select ${invitation} from invitations where form = :form and id < :after order by id desc limit :limit`,
)
const renewInvitation = statement<{ id: string; tokenHash: string; expires: number }>(
  `update invitations set token_hash = :tokenHash, expires = :expires, sent = sent + 1
   where id = :id and state = 'open'`,
)
const moveInvitation = statement<{ id: string; from: Invitation['state']; to: Invitation['state'] }>(
  `update invitations set state = :to where id = :id and state = :from`,
)
const deleteExpiredInvitations = statement(
  (on) => `delete from invitations where id in
    (select id from invitations where expires <= ${on.now} - ${keptMillis} limit ${deletedAtOnce})`,
)
