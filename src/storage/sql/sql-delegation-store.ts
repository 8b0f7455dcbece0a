import { GatewayError } from '#kernel/errors.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import type { Delegation, DelegationStore } from '#storage/delegation-store.ts'
import { appendToChain } from '#storage/sql/audit-chain.ts'
import { databaseNow } from '#storage/sql/database-time.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import type { SqlClient } from '#storage/sql/sql-client.ts'
import { assertStorable, isStorable, lookupKey } from '#storage/sql/text-keys.ts'

const maxListed = 100

interface DelegationRow {
  readonly id: string
  readonly login: string
  readonly deputy: string
  readonly starts: number
  readonly ends: number
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    insert: fixed<DelegationRow & { login_key: string; deputy_key: string }, unknown>(dialect, (db, at) =>
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
    remove: fixed<{ login_key: string; id: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('delegations').where('id', '=', at('id')).where('login_key', '=', at('login_key')),
    ),
    of: fixed<{ login_key: string }, DelegationRow>(dialect, (db, at) =>
      db
        .selectFrom('delegations')
        .select(['id', 'login', 'deputy', 'starts', 'ends'])
        .where('login_key', '=', at('login_key'))
        .where('ends', '>', now)
        .orderBy('starts')
        .orderBy('id')
        .limit(maxListed),
    ),
    deputies: fixed<{ login_key: string }, { deputy: string }>(dialect, (db, at) =>
      db
        .selectFrom('delegations')
        .select('deputy')
        .where('login_key', '=', at('login_key'))
        .where('ends', '>', now)
        .where('starts', '<=', now)
        .orderBy('starts')
        .orderBy('id')
        .limit(maxListed),
    ),
    represented: fixed<{ deputy_key: string }, { login: string }>(dialect, (db, at) =>
      db
        .selectFrom('delegations')
        .select('login')
        .where('deputy_key', '=', at('deputy_key'))
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

  async add({ id, login, deputy, starts, ends }: Delegation, audit: readonly AuditRow[] = []): Promise<void> {
    assertStorable('id', id)
    assertStorable('login', login)
    assertStorable('deputy', deputy)
    if (!(starts < ends)) throw new GatewayError('BAD_REQUEST', 'a delegation that ends before it starts')
    const query = this.#statements.insert({
      id,
      login,
      login_key: lookupKey(login),
      deputy,
      deputy_key: lookupKey(deputy),
      starts: starts.getTime(),
      ends: ends.getTime(),
    })
    await this.#client.transaction(async (tx) => {
      await tx.run(query)
      if (audit.length > 0) await appendToChain(tx, audit)
    })
  }

  async remove(login: string, id: string, audit: readonly AuditRow[] = []): Promise<boolean> {
    if (!isStorable(login) || !isStorable(id)) return false
    const query = this.#statements.remove({ login_key: lookupKey(login), id })
    return await this.#client.transaction(async (tx) => {
      const removed = (await tx.run(query)) > 0
      if (removed && audit.length > 0) await appendToChain(tx, audit)
      return removed
    })
  }

  async listOf(login: string): Promise<readonly Delegation[]> {
    if (!isStorable(login)) return []
    const rows = await this.#client.query(this.#statements.of({ login_key: lookupKey(login) }))
    return rows.map(({ starts, ends, ...row }) => ({ ...row, starts: new Date(starts), ends: new Date(ends) }))
  }

  async deputiesOf(login: string): Promise<readonly string[]> {
    if (!isStorable(login)) return []
    const rows = await this.#client.query(this.#statements.deputies({ login_key: lookupKey(login) }))
    return [...new Set(rows.map(({ deputy }) => deputy))]
  }

  async representedBy(deputy: string): Promise<readonly string[]> {
    if (!isStorable(deputy)) return []
    const rows = await this.#client.query(this.#statements.represented({ deputy_key: lookupKey(deputy) }))
    return [...new Set(rows.map(({ login }) => login))]
  }
}
