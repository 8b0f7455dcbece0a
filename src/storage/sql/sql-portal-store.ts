import { sql } from 'kysely'
import { identitiesOf, type UserRef } from '#identity/identity.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable, storable } from '#storage/client/text-keys.ts'
import type { MarkList, PortalMark, PortalOffer, PortalStore } from '#storage/portal-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts } from '#storage/sql/queries.ts'

interface Owner {
  readonly login_key: string
  /** Marks from before identities are stored under it; the same as `login_key` where the user has none. */
  readonly former: string
}

interface MarkPlace extends Owner {
  readonly list: MarkList
  readonly kind: string
  readonly name: string
}

interface OfferRow {
  readonly reference: string
  readonly login_key: string
  readonly workflow: string
  readonly parameters: string
  readonly life: number
  readonly [name: string]: string | number
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    marks: fixed<Owner & Pick<MarkPlace, 'list'>, { kind: string; name: string; at: number }>(dialect, (db, at) =>
      db
        .selectFrom('portal_marks')
        .select(['kind', 'name', 'at'])
        .where('login_key', 'in', [at('login_key'), at('former')])
        .where('list', '=', at('list'))
        .orderBy('at')
        .orderBy('name'),
    ),
    /** Later than all that are there, so that the order is that of the calls. */
    mark: fixed<MarkPlace & { limit: number }, { name: string }>(dialect, (db, at) => ({
      compile: () =>
        sql<{ name: string }>`
          insert into portal_marks (login_key, list, kind, name, at)
          select ${at('login_key')}, ${at('list')}, ${at('kind')}, ${at('name')},
            case when coalesce(max(at), 0) >= ${now} then max(at) + 1 else ${now} end
          from portal_marks where login_key = ${at('login_key')} and list = ${at('list')}
          having count(*) < cast(${at('limit')} as integer)
          on conflict (login_key, list, kind, name) do nothing
          returning name`.compile(db),
    })),
    unmark: fixed<MarkPlace, unknown>(dialect, (db, at) =>
      db
        .deleteFrom('portal_marks')
        .where('login_key', 'in', [at('login_key'), at('former')])
        .where('list', '=', at('list'))
        .where('kind', '=', at('kind'))
        .where('name', '=', at('name')),
    ),
    /** All but the latest. */
    cut: fixed<Pick<MarkPlace, 'login_key' | 'list'> & { limit: number }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`delete from portal_marks where login_key = ${at('login_key')} and list = ${at('list')}
          and at <= (select at from portal_marks where login_key = ${at('login_key')} and list = ${at('list')}
            order by at desc limit 1 offset cast(${at('limit')} as integer))`.compile(db),
    })),
    offers: fixedInserts<OfferRow>(dialect, ['reference', 'login_key', 'workflow', 'parameters', 'life'], (db, rows) =>
      db
        .insertInto('portal_offers')
        .values(rows.map(({ life, ...row }) => ({ ...row, expires: sql<number>`${now} + cast(${life} as bigint)` }))),
    ),
    forget: fixed<{ login_key: string; keep: number }, unknown>(dialect, (db, at) => ({
      compile: () =>
        sql`delete from portal_offers where login_key = ${at('login_key')}
          and expires <= (select expires from portal_offers where login_key = ${at('login_key')}
            order by expires desc limit 1 offset cast(${at('keep')} as integer))`.compile(db),
    })),
    expire: fixed<object, unknown>(dialect, (db) => db.deleteFrom('portal_offers').where('expires', '<=', now)),
    offered: fixed<{ reference: string; login_key: string }, { workflow: string; parameters: string }>(
      dialect,
      (db, at) =>
        db
          .selectFrom('portal_offers')
          .select(['workflow', 'parameters'])
          .where('reference', '=', at('reference'))
          .where('login_key', '=', at('login_key'))
          .where('expires', '>', now),
    ),
  }
})

export class SqlPortalStore implements PortalStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async marks(user: UserRef, list: MarkList): Promise<readonly PortalMark[]> {
    const rows = await this.#client.query(this.#statements.marks({ ...ownerOf(user), list }))
    return rows.map(({ kind, name, at }) => ({ kind, name, at: new Date(at) }))
  }

  async mark(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<boolean> {
    const place = placeOf(user, list, mark)
    const { marks, mark: insert } = this.#statements
    return await this.#client.transaction(async (tx) => {
      const present = await tx.query(marks(place))
      if (present.some(({ kind, name }) => kind === mark.kind && name === mark.name)) return true
      return (await tx.query(insert({ ...place, limit }))).length > 0
    })
  }

  async note(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>, limit: number): Promise<void> {
    const place = placeOf(user, list, mark)
    const { unmark, mark: insert, cut } = this.#statements
    await this.#client.transaction(async (tx) => {
      await tx.run(unmark(place))
      await tx.query(insert({ ...place, limit: limit + 1_000 }))
      await tx.run(cut({ login_key: place.login_key, list, limit }))
    })
  }

  async unmark(user: UserRef, list: MarkList, mark: Omit<PortalMark, 'at'>): Promise<void> {
    if (!isStorable(mark.kind) || !isStorable(mark.name)) return
    const query = this.#statements.unmark(placeOf(user, list, mark))
    await this.#client.transaction((tx) => tx.run(query))
  }

  async offer(user: UserRef, offers: readonly PortalOffer[], forMillis: number, keep: number): Promise<void> {
    const rows = offers.map(({ reference, workflow, parameters }) => ({
      reference,
      login_key: user.identity,
      workflow,
      parameters: storable(JSON.stringify(parameters)),
      life: Math.trunc(forMillis),
    }))
    const queries = this.#statements.offers(rows)
    await this.#client.transaction(async (tx) => {
      await tx.run(this.#statements.expire({}))
      await tx.run(this.#statements.forget({ login_key: user.identity, keep }))
      for (const query of queries) await tx.run(query)
    })
  }

  async offered(user: UserRef, reference: string): Promise<PortalOffer | undefined> {
    if (!isStorable(reference)) return undefined
    const query = this.#statements.offered({ reference, login_key: user.identity })
    const [row] = await this.#client.query(query)
    return row && { reference, workflow: row.workflow, parameters: JSON.parse(row.parameters) }
  }
}

function placeOf(user: UserRef, list: MarkList, { kind, name }: Omit<PortalMark, 'at'>): MarkPlace {
  assertStorable('name', name)
  return { ...ownerOf(user), list, kind, name }
}

function ownerOf(user: UserRef): Owner {
  const { identity } = user
  const [, former = identity] = identitiesOf(user)
  return { login_key: identity, former: storable(former) }
}
