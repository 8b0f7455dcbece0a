import { type RawBuilder, sql } from 'kysely'
import type { AuditEntry } from '#domain/audit.ts'
import { appendToChain } from '#storage/audit/audit-chain.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import type { NewStoredFactor, SecondFactorStore, StoredFactor } from '#storage/second-factor-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts } from '#storage/sql/queries.ts'

interface FactorRow {
  readonly id: string
  readonly owner: string
  readonly kind: string
  readonly name: string
  readonly data: string
  readonly counter: number
  readonly created: number
  readonly last_used: number | null
}

interface FactorKey {
  readonly id: string
  readonly owner: string
}

type NamedFactor = FactorKey & Pick<NewStoredFactor, 'ownerName'>

interface CodeRow {
  readonly owner: string
  readonly hash: string
  readonly [name: string]: string
}

const columns = ['id', 'owner', 'kind', 'name', 'data', 'counter', 'created', 'last_used'] as const

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    ofOwner: fixed<{ owner: string }, FactorRow>(dialect, (db, at) =>
      db.selectFrom('second_factors').select(columns).where('owner', '=', at('owner')).orderBy('place'),
    ),
    /** At the next place, which one alone can take. */
    add: fixed<NewStoredFactor & { limit: number }, { id: string }>(dialect, (db, at) => ({
      compile: () =>
        sql<{ id: string }>`
          insert into second_factors (id, owner, owner_name, place, kind, name, data, counter, created)
          select ${asText(at('id'))}, ${asText(at('owner'))}, ${asText(at('ownerName'))}, coalesce(max(place) + 1, 0), ${asText(at('kind'))},
            ${asText(at('name'))}, ${asText(at('data'))}, cast(${at('counter')} as bigint), ${now}
          from second_factors where owner = ${at('owner')}
          having count(*) < cast(${at('limit')} as integer)
          on conflict do nothing
          returning id`.compile(db),
    })),
    adoptFactors: fixed<{ from: string; to: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('second_factors')
        .set({ owner: at('to'), owner_name: at('from') })
        .where('owner', '=', at('from'))
        .where(({ not, exists, selectFrom }) =>
          not(exists(selectFrom('second_factors as own').select('own.id').where('own.owner', '=', at('to')))),
        ),
    ),
    adoptCodes: fixed<{ from: string; to: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('recovery_codes')
        .set({ owner: at('to') })
        .where('owner', '=', at('from')),
    ),
    use: fixed<FactorKey & { from: number; to: number }, unknown>(dialect, (db, at) =>
      db
        .updateTable('second_factors')
        .set({ counter: at('to'), last_used: now })
        .where('id', '=', at('id'))
        .where('owner', '=', at('owner'))
        .where('counter', '=', at('from')),
    ),
    rename: fixed<FactorKey & { name: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('second_factors')
        .set({ name: at('name') })
        .where('id', '=', at('id'))
        .where('owner', '=', at('owner')),
    ),
    remove: fixed<FactorKey, unknown>(dialect, (db, at) =>
      db.deleteFrom('second_factors').where('id', '=', at('id')).where('owner', '=', at('owner')),
    ),
    /** A name belongs to whoever used it last. */
    takeName: fixed<Pick<NewStoredFactor, 'owner' | 'ownerName'>, unknown>(dialect, (db, at) =>
      db
        .updateTable('second_factors')
        .set({ owner_name: null })
        .where('owner_name', '=', at('ownerName'))
        .where('owner', '<>', at('owner')),
    ),
    giveName: fixed<Pick<NewStoredFactor, 'owner' | 'ownerName'>, unknown>(dialect, (db, at) =>
      db
        .updateTable('second_factors')
        .set({ owner_name: at('ownerName') })
        .where('owner', '=', at('owner')),
    ),
    ownersOfName: fixed<{ ownerName: string }, { owner: string }>(dialect, (db, at) =>
      db
        .selectFrom('second_factors')
        .select('owner')
        .distinct()
        .where((where) => where.or([where('owner', '=', at('ownerName')), where('owner_name', '=', at('ownerName'))])),
    ),
    removeAll: fixed<{ owner: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('second_factors').where('owner', '=', at('owner')),
    ),
    codes: fixed<{ owner: string }, { count: number }>(dialect, (db, at) =>
      db
        .selectFrom('recovery_codes')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('owner', '=', at('owner')),
    ),
    addCodes: fixedInserts<CodeRow>(dialect, ['owner', 'hash'], (db, rows) =>
      db.insertInto('recovery_codes').values(rows),
    ),
    useCode: fixed<{ owner: string; hash: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('recovery_codes').where('owner', '=', at('owner')).where('hash', '=', at('hash')),
    ),
    removeCodes: fixed<{ owner: string }, unknown>(dialect, (db, at) =>
      db.deleteFrom('recovery_codes').where('owner', '=', at('owner')),
    ),
  }
})

const asText = (value: RawBuilder<string>): RawBuilder<string> => sql`cast(${value} as text)`

export class SqlSecondFactorStore implements SecondFactorStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async ofOwner(owner: string): Promise<readonly StoredFactor[]> {
    if (!isStorable(owner)) return []
    return (await this.#client.query(this.#statements.ofOwner({ owner }))).map(toFactor)
  }

  async add(
    factor: NewStoredFactor,
    limit: number,
    codes: readonly string[],
    audit: readonly AuditEntry[],
  ): Promise<'refused' | 'added' | 'added with codes'> {
    const { owner } = factor
    for (const text of [factor.name, owner, factor.ownerName]) assertStorable('name', text)
    return await this.#client.transaction(async (tx) => {
      const added = await tx.query(this.#statements.add({ ...factor, limit }))
      if (added.length === 0) return 'refused'
      await this.#name(tx, factor)
      await appendAudit(tx, audit)
      if ((await this.#countCodes(tx, owner)) > 0) return 'added'
      await this.#addCodes(tx, owner, codes)
      return 'added with codes'
    })
  }

  async adopt(from: string, to: string): Promise<void> {
    await this.#client.transaction(async (tx) => {
      const adopted = await tx.run(this.#statements.adoptFactors({ from, to }))
      if (adopted > 0) await tx.run(this.#statements.adoptCodes({ from, to }))
    })
  }

  async use(factor: NamedFactor, from: number, to: number): Promise<boolean> {
    if (!isStorable(factor.id) || !isStorable(factor.owner)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await tx.run(this.#statements.use({ ...factor, from, to }))) === 0) return false
      await this.#name(tx, factor)
      return true
    })
  }

  async rename(id: string, owner: string, name: string): Promise<boolean> {
    if (!isStorable(id) || !isStorable(owner)) return false
    assertStorable('name', name)
    const query = this.#statements.rename({ id, owner, name })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async remove(id: string, owner: string, audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(id) || !isStorable(owner)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await tx.run(this.#statements.remove({ id, owner }))) === 0) return false
      const left = await tx.query(this.#statements.ofOwner({ owner }))
      if (left.length === 0) await tx.run(this.#statements.removeCodes({ owner }))
      await appendAudit(tx, audit)
      return true
    })
  }

  async removeAllOfName(ownerName: string, audit: readonly AuditEntry[]): Promise<number> {
    if (!isStorable(ownerName)) return 0
    return await this.#client.transaction(async (tx) => {
      let removed = 0
      for (const { owner } of await tx.query(this.#statements.ownersOfName({ ownerName }))) {
        removed += await tx.run(this.#statements.removeAll({ owner }))
        await tx.run(this.#statements.removeCodes({ owner }))
      }
      if (removed > 0) await appendAudit(tx, audit)
      return removed
    })
  }

  async recoveryCodes(owner: string): Promise<number> {
    return isStorable(owner) ? await this.#countCodes(this.#client, owner) : 0
  }

  async replaceRecoveryCodes(owner: string, codes: readonly string[], audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(owner)) return false
    return await this.#client.transaction(async (tx) => {
      const factors = await tx.query(this.#statements.ofOwner({ owner }))
      if (factors.length === 0) return false
      await tx.run(this.#statements.removeCodes({ owner }))
      await this.#addCodes(tx, owner, codes)
      await appendAudit(tx, audit)
      return true
    })
  }

  async useRecoveryCode(owner: string, code: string, audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(owner) || !isStorable(code)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await tx.run(this.#statements.useCode({ owner, hash: code }))) === 0) return false
      await appendAudit(tx, audit)
      return true
    })
  }

  /** All factors of a user are found by the name of the last login with one. */
  async #name(tx: SqlTransaction, factor: Pick<NewStoredFactor, 'owner' | 'ownerName'>): Promise<void> {
    await tx.run(this.#statements.takeName(factor))
    await tx.run(this.#statements.giveName(factor))
  }

  async #countCodes(reader: Pick<SqlClient, 'query'>, owner: string): Promise<number> {
    const [row] = await reader.query(this.#statements.codes({ owner }))
    return Number(row?.count ?? 0)
  }

  async #addCodes(tx: SqlTransaction, owner: string, codes: readonly string[]): Promise<void> {
    for (const query of this.#statements.addCodes(codes.map((hash) => ({ owner, hash })))) await tx.run(query)
  }
}

async function appendAudit(tx: SqlTransaction, audit: readonly AuditEntry[]): Promise<void> {
  if (audit.length > 0) await appendToChain(tx, audit)
}

const toFactor = ({ created, last_used, ...row }: FactorRow): StoredFactor => ({
  ...row,
  created: new Date(created),
  lastUsed: last_used === null ? undefined : new Date(last_used),
})
