import type { AuditEntry } from '#domain/audit.ts'
import type { NewMail } from '#domain/mail.ts'
import { GatewayError } from '#kernel/errors.ts'
import { appendToChain } from '#storage/audit/audit-chain.ts'
import { readNow } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import { insertMails } from '#storage/mail-store.ts'
import type {
  Invitation,
  InvitationPage,
  InvitationQuery,
  NewInvitation,
  PendingRegistration,
  RegistrationStore,
  StoredInvitationState,
} from '#storage/registration-store.ts'
import { pruneInParts } from '#storage/sql/prune.ts'
import { type InvitationRow, registrationStatements } from '#storage/sql/registration-statements.ts'

const maxPage = 500
/** Behind every id. */
const first = '~'

export class SqlRegistrationStore implements RegistrationStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof registrationStatements> {
    return registrationStatements(this.#client.dialect)
  }

  async reserve(owner: string, keys: readonly string[], forMillis: number): Promise<readonly string[]> {
    // In one order for all, so that nobody waits for somebody who waits for them.
    const wanted = [...new Set(keys)].sort()
    if (wanted.length === 0) return []
    // Most who come late are told without a lock that others would wait for.
    const held: string[] = []
    for (const key of wanted)
      held.push(...(await this.#client.query(this.#statements.heldByOther({ key, owner }))).map((row) => row.key))
    if (held.length > 0) return held
    try {
      await this.#client.transaction(async (tx) => {
        const taken: string[] = []
        for (const key of wanted) {
          const [row] = await tx.query(this.#statements.reserve({ key, owner, millis: forMillis }))
          if (row === undefined) taken.push(key)
        }
        if (taken.length > 0) throw new Taken(taken)
      })
      return []
    } catch (error) {
      if (error instanceof Taken) return error.keys
      throw error
    }
  }

  async holdForRun(owner: string, run: string, forMillis: number): Promise<void> {
    const query = this.#statements.holdForRun({ owner, run, millis: forMillis })
    await this.#client.transaction((tx) => tx.run(query))
  }

  async release(owner: string): Promise<void> {
    await this.#client.transaction((tx) => tx.run(this.#statements.release({ owner })))
  }

  async addPending(pending: PendingRegistration, mails: readonly NewMail[]): Promise<void> {
    const { id, form, tokenHash, sealed, expires } = pending
    assertStorable('form', form)
    const row = { id, form, token_hash: tokenHash, sealed, expires: expires.getTime() }
    await this.#client.transaction(async (tx) => {
      await tx.run(this.#statements.addPending(row))
      await insertMails(tx, mails, await readNow(tx))
    })
  }

  async findPending(form: string, tokenHash: string): Promise<PendingRegistration | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const [row] = await this.#client.query(this.#statements.findPending({ form, token_hash: tokenHash }))
    if (row === undefined) return undefined
    const { id, sealed } = row
    return { id, form, tokenHash, sealed, expires: new Date(row.expires) }
  }

  async removePending(id: string): Promise<void> {
    await this.#client.transaction((tx) => tx.run(this.#statements.removePending({ id })))
  }

  async addInvitation(
    invitation: NewInvitation,
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<void> {
    const { id, form, tokenHash, email, attributes, invitedBy, created, expires } = invitation
    for (const text of [form, email, invitedBy]) assertStorable('invitation', text)
    const row = {
      id,
      form,
      token_hash: tokenHash,
      email,
      attributes: JSON.stringify(attributes),
      invited_by: invitedBy,
      created: created.getTime(),
      expires: expires.getTime(),
    }
    await this.#client.transaction(async (tx) => {
      await tx.run(this.#statements.addInvitation(row))
      await insertMails(tx, mails, await readNow(tx))
      await appendAudit(tx, audit)
    })
  }

  async findInvitation(form: string, tokenHash: string): Promise<Invitation | undefined> {
    if (!isStorable(form) || !isStorable(tokenHash)) return undefined
    const [row] = await this.#client.query(this.#statements.findInvitation({ form, token_hash: tokenHash }))
    return row && toInvitation(row)
  }

  async getInvitation(form: string, id: string): Promise<Invitation | undefined> {
    if (!isStorable(form) || !isStorable(id)) return undefined
    const [row] = await this.#client.query(this.#statements.getInvitation({ form, id }))
    return row && toInvitation(row)
  }

  async listInvitations({ form, after = first, limit }: InvitationQuery): Promise<InvitationPage> {
    if (!isStorable(form) || !isStorable(after)) throw new GatewayError('BAD_REQUEST', 'not a page of invitations')
    const most = Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))
    const rows = await this.#client.query(this.#statements.listInvitations({ form, after, limit: most + 1 }))
    const invitations = rows.slice(0, most).map(toInvitation)
    const last = invitations.at(-1)
    return rows.length > most && last !== undefined ? { invitations, next: last.id } : { invitations }
  }

  async renewInvitation(
    { id, tokenHash, expires }: { readonly id: string; readonly tokenHash: string; readonly expires: Date },
    mails: readonly NewMail[],
    audit: readonly AuditEntry[],
  ): Promise<boolean> {
    const query = this.#statements.renewInvitation({ id, token_hash: tokenHash, expires: expires.getTime() })
    return await this.#client.transaction(async (tx) => {
      if ((await tx.run(query)) === 0) return false
      await insertMails(tx, mails, await readNow(tx))
      await appendAudit(tx, audit)
      return true
    })
  }

  async moveInvitation(
    id: string,
    from: StoredInvitationState,
    to: StoredInvitationState,
    audit: readonly AuditEntry[],
  ): Promise<boolean> {
    return await this.#client.transaction(async (tx) => {
      if ((await tx.run(this.#statements.moveInvitation({ id, from, to }))) === 0) return false
      await appendAudit(tx, audit)
      return true
    })
  }

  async deleteExpired(): Promise<number> {
    const { pruneReservations, prunePending, pruneInvitations } = this.#statements
    let pruned = 0
    for (const statement of [pruneReservations, prunePending, pruneInvitations]) {
      pruned += await pruneInParts(this.#client, statement({}))
    }
    return pruned
  }
}

/** Undoes the transaction that found it. */
class Taken extends Error {
  readonly keys: readonly string[]

  constructor(keys: readonly string[]) {
    super('reserved by others')
    this.keys = keys
  }
}

async function appendAudit(tx: SqlTransaction, audit: readonly AuditEntry[]): Promise<void> {
  if (audit.length > 0) await appendToChain(tx, audit)
}

const toInvitation = ({ invited_by, attributes, created, expires, ...row }: InvitationRow): Invitation => ({
  ...row,
  attributes: JSON.parse(attributes) as Record<string, string>,
  invitedBy: invited_by,
  created: new Date(created),
  expires: new Date(expires),
})
