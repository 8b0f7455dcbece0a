import type { AuditEntry } from '#domain/audit.ts'
import { identitiesOf, storedIdentity, type UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable, storable } from '#storage/client/text-keys.ts'
import type { Delegation, DelegationStore } from '#storage/delegation-store.ts'
import { appendToChain } from '#storage/sql/audit-chain.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

const maxListed = 100

interface DelegationRow {
  readonly id: string
  readonly login: string
  readonly login_key: string
  readonly deputy: string
  readonly deputy_key: string
  readonly starts: number
  readonly ends: number
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    insert: fixed<DelegationRow, unknown>(dialect, (db, at) =>
      db.insertInto('delegations').values({
        id: at('id'),
        login: at('login'),
        login_key: at('login_key'),
        deputy: at('deputy'),
        deputy_key: at('deputy_key'),
        starts: at('starts'),
        ends: at('ends'),
      }),
    ),
    remove: fixed<Owner & { id: string }, unknown>(dialect, (db, at) =>
      db
        .deleteFrom('delegations')
        .where('id', '=', at('id'))
        .where('login_key', 'in', [at('identity'), at('former')]),
    ),
    of: fixed<Owner, DelegationRow>(dialect, (db, at) =>
      db
        .selectFrom('delegations')
        .select(['id', 'login', 'login_key', 'deputy', 'deputy_key', 'starts', 'ends'])
        .where('login_key', 'in', [at('identity'), at('former')])
        .where('ends', '>', now)
        .orderBy('starts')
        .orderBy('id')
        .limit(maxListed),
    ),
    deputies: fixed<Owner, { deputy: string; deputy_key: string }>(dialect, (db, at) =>
      db
        .selectFrom('delegations')
        .select(['deputy', 'deputy_key'])
        .where('login_key', 'in', [at('identity'), at('former')])
        .where('ends', '>', now)
        .where('starts', '<=', now)
        .orderBy('starts')
        .orderBy('id')
        .limit(maxListed),
    ),
    represented: fixed<Owner, { login: string; login_key: string }>(dialect, (db, at) =>
      db
        .selectFrom('delegations')
        .select(['login', 'login_key'])
        .where('deputy_key', 'in', [at('identity'), at('former')])
        .where('ends', '>', now)
        .where('starts', '<=', now)
        .orderBy('starts')
        .orderBy('id')
        .limit(maxListed),
    ),
  }
})

export class SqlDelegationStore implements DelegationStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async add({ id, user, deputy, starts, ends }: Delegation, audit: readonly AuditEntry[] = []): Promise<void> {
    assertStorable('id', id)
    assertStorable('login', user.login)
    assertStorable('deputy', deputy.login)
    if (!(starts < ends)) throw new GatewayError('BAD_REQUEST', 'a delegation that ends before it starts')
    const query = this.#statements.insert({
      id,
      login: user.login,
      login_key: user.identity,
      deputy: deputy.login,
      deputy_key: deputy.identity,
      starts: starts.getTime(),
      ends: ends.getTime(),
    })
    await this.#client.transaction(async (tx) => {
      await tx.run(query)
      if (audit.length > 0) await appendToChain(tx, audit)
    })
  }

  async remove(user: UserRef, id: string, audit: readonly AuditEntry[] = []): Promise<boolean> {
    if (!isStorable(id)) return false
    const query = this.#statements.remove({ ...ownerOf(user), id })
    return await this.#client.transaction(async (tx) => {
      const removed = (await tx.run(query)) > 0
      if (removed && audit.length > 0) await appendToChain(tx, audit)
      return removed
    })
  }

  async listOf(user: UserRef): Promise<readonly Delegation[]> {
    const rows = await this.#client.query(this.#statements.of(ownerOf(user)))
    return rows.map(({ id, login, login_key, deputy, deputy_key, starts, ends }) => ({
      id,
      user: userIn(login, login_key),
      deputy: userIn(deputy, deputy_key),
      starts: new Date(starts),
      ends: new Date(ends),
    }))
  }

  async deputiesOf(user: UserRef): Promise<readonly UserRef[]> {
    const rows = await this.#client.query(this.#statements.deputies(ownerOf(user)))
    return distinct(rows.map(({ deputy, deputy_key }) => userIn(deputy, deputy_key)))
  }

  async representedBy(deputy: UserRef): Promise<readonly UserRef[]> {
    const rows = await this.#client.query(this.#statements.represented(ownerOf(deputy)))
    return distinct(rows.map(({ login, login_key }) => userIn(login, login_key)))
  }
}

/** Rows from before identities name logins, so the rows of a directory user are stored under two keys. */
interface Owner {
  readonly identity: string
  readonly former: string
}

function ownerOf(user: UserRef): Owner {
  const { identity } = user
  const [, former = identity] = identitiesOf(user)
  return { identity, former: storable(former) }
}

const userIn = (login: string, key: string): UserRef => ({ login, identity: storedIdentity(key) })

const distinct = (users: readonly UserRef[]): UserRef[] => [
  ...new Map(users.map((user) => [user.identity, user])).values(),
]
