import { appendAudit } from '#audit/store/audit-chain.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { columns, inserted, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { type Identity, storedIdentity, type UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'

const maxListed = 100

/** A period in which a deputy may decide for a user. */
export interface Delegation {
  /** Unique; chosen by the caller. */
  readonly id: string
  readonly user: UserRef
  readonly deputy: UserRef
  readonly starts: Date
  readonly ends: Date
}

interface DelegationRow {
  readonly id: string
  readonly login: string
  readonly loginKey: Identity
  readonly deputy: string
  readonly deputyKey: Identity
  readonly starts: number
  readonly ends: number
}

/** A change and its audit rows are one transaction. */
export class DelegationStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Throws CONFLICT if the id exists, BAD_REQUEST for a period that ends before it starts. */
  async add({ id, user, deputy, starts, ends }: Delegation, audit: readonly AuditEntry[] = []): Promise<void> {
    assertStorable('id', id)
    assertStorable('login', user.login)
    assertStorable('deputy', deputy.login)
    if (!(starts < ends)) throw new GatewayError('BAD_REQUEST', 'the delegation ends before it starts')
    const row = {
      id,
      login: user.login,
      loginKey: user.identity,
      deputy: deputy.login,
      deputyKey: deputy.identity,
      starts: starts.getTime(),
      ends: ends.getTime(),
    }
    await this.#client.transaction(async (tx) => {
      await insert.run(tx, row)
      await appendAudit(tx, audit)
    })
  }

  /** False, and nothing is written, if the user has none with this id. */
  async remove(user: UserRef, id: string, audit: readonly AuditEntry[] = []): Promise<boolean> {
    if (!isStorable(id)) return false
    return await this.#client.transaction(async (tx) => {
      const removed = (await remove.run(tx, { id, user: user.identity })) > 0
      if (removed) await appendAudit(tx, audit)
      return removed
    })
  }

  /** The user's delegations that have not ended, earliest first, at most 100. */
  async listOf(user: UserRef): Promise<readonly Delegation[]> {
    const rows = await findOfUser.all(this.#client, { user: user.identity })
    return rows.map(({ id, login, loginKey, deputy, deputyKey, starts, ends }) => ({
      id,
      user: userIn(login, loginKey),
      deputy: userIn(deputy, deputyKey),
      starts: new Date(starts),
      ends: new Date(ends),
    }))
  }

  /** The users who may decide for this user now, at most 100. */
  async deputiesOf(user: UserRef): Promise<readonly UserRef[]> {
    const rows = await findDeputies.all(this.#client, { user: user.identity })
    return distinct(rows.map(({ deputy, deputyKey }) => userIn(deputy, deputyKey)))
  }

  /** The users for whom the deputy may decide now, at most 100. */
  async representedBy(deputy: UserRef): Promise<readonly UserRef[]> {
    const rows = await findRepresented.all(this.#client, { deputy: deputy.identity })
    return distinct(rows.map(({ login, loginKey }) => userIn(login, loginKey)))
  }
}

const userIn = (login: string, key: string): UserRef => ({ login, identity: storedIdentity(key) })

const distinct = (users: readonly UserRef[]): UserRef[] => [
  ...new Map(users.map((user) => [user.identity, user])).values(),
]

const stored = ['id', 'login', 'loginKey', 'deputy', 'deputyKey', 'starts', 'ends'] as const

const insert = statement<DelegationRow>(`insert into delegations ${inserted(stored)}`)
const remove = statement<{ id: string; user: Identity }>(`delete from delegations where id = :id and login_key = :user`)
const findOfUser = statement<{ user: Identity }, DelegationRow>(
  (on) => `select ${columns(stored)} from delegations
    where login_key = :user and ends > ${on.now} order by starts, id limit ${maxListed}`,
)
const findDeputies = statement<{ user: Identity }, Pick<DelegationRow, 'deputy' | 'deputyKey'>>(
  (on) => `select ${columns(['deputy', 'deputyKey'])} from delegations
    where login_key = :user and ends > ${on.now} and starts <= ${on.now} order by starts, id limit ${maxListed}`,
)
const findRepresented = statement<{ deputy: Identity }, Pick<DelegationRow, 'login' | 'loginKey'>>(
  (on) => `select ${columns(['login', 'loginKey'])} from delegations
    where deputy_key = :deputy and ends > ${on.now} and starts <= ${on.now} order by starts, id limit ${maxListed}`,
)
