import { appendAudit } from '#audit/store/audit-chain.ts'
import type { DatabaseReader, DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, RowInsert, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { SecondFactor } from './second-factor.ts'

export interface StoredFactor extends Omit<SecondFactor, 'kind' | 'secret'> {
  /** The key of the owner's identity. */
  readonly owner: string
  readonly kind: string
  /** The encrypted secret. */
  readonly data: string
}

export interface NewStoredFactor extends Omit<StoredFactor, 'created' | 'lastUsed'> {
  /** The key of the present name of the owner's entry. */
  readonly ownerName: string
}

interface FactorRow extends Omit<StoredFactor, 'created' | 'lastUsed'> {
  readonly created: number
  readonly lastUsed: number | null
}

type FactorKey = Pick<StoredFactor, 'id' | 'owner'>
type OwnerName = Pick<NewStoredFactor, 'owner' | 'ownerName'>

/** Second factors and recovery codes. A change and its audit rows are one transaction. */
export class SecondFactorStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Earliest first. */
  async ofOwner(owner: string): Promise<readonly StoredFactor[]> {
    if (!isStorable(owner)) return []
    return (await findByOwner.all(this.#client, { owner })).map(({ created, lastUsed, ...same }) => ({
      ...same,
      created: new Date(created),
      lastUsed: lastUsed === null ? undefined : new Date(lastUsed),
    }))
  }

  /**
   * `refused` when the id exists, the owner has `limit` factors, or another factor was added concurrently. The codes are
   * stored if the owner has none.
   */
  async add(
    factor: NewStoredFactor,
    limit: number,
    codes: readonly string[],
    audit: readonly AuditEntry[],
  ): Promise<'refused' | 'added' | 'added with codes'> {
    const { owner } = factor
    for (const text of [factor.name, owner, factor.ownerName]) assertStorable('name', text)
    return await this.#client.transaction(async (tx) => {
      if ((await insert.first(tx, { ...factor, limit })) === undefined) return 'refused'
      await moveName(tx, factor)
      await appendAudit(tx, audit)
      if ((await readCodeCount(tx, owner)) > 0) return 'added'
      await addCodes(tx, owner, codes)
      return 'added with codes'
    })
  }

  /** Moves the counter. False when it isn't at `from`, as when another request was first. */
  async use(factor: FactorKey & OwnerName, from: number, to: number): Promise<boolean> {
    if (!isStorable(factor.id) || !isStorable(factor.owner)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await moveCounter.run(tx, { ...factor, from, to })) === 0) return false
      await moveName(tx, factor)
      return true
    })
  }

  async rename(id: string, owner: string, name: string): Promise<boolean> {
    if (!isStorable(id) || !isStorable(owner)) return false
    assertStorable('name', name)
    return (await this.#client.transaction((tx) => rename.run(tx, { id, owner, name }))) > 0
  }

  /** The recovery codes are deleted with the last factor. */
  async remove(id: string, owner: string, audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(id) || !isStorable(owner)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await deleteById.run(tx, { id, owner })) === 0) return false
      if ((await findByOwner.first(tx, { owner })) === undefined) await deleteCodes.run(tx, { owner })
      await appendAudit(tx, audit)
      return true
    })
  }

  /** Deletes all factors and recovery codes of the owner; returns how many factors. Without any, writes nothing. */
  async removeAll(owner: string, audit: readonly AuditEntry[]): Promise<number> {
    if (!isStorable(owner)) return 0
    return await this.#client.transaction(async (tx) => {
      const removed = await deleteByOwner.run(tx, { owner })
      await deleteCodes.run(tx, { owner })
      if (removed > 0) await appendAudit(tx, audit)
      return removed
    })
  }

  /** Deletes all factors and recovery codes of the user who last used a factor under this name; returns how many factors. */
  async removeAllOfName(ownerName: string, audit: readonly AuditEntry[]): Promise<number> {
    if (!isStorable(ownerName)) return 0
    return await this.#client.transaction(async (tx) => {
      let removed = 0
      for (const { owner } of await findOwnersByName.all(tx, { ownerName })) {
        removed += await deleteByOwner.run(tx, { owner })
        await deleteCodes.run(tx, { owner })
      }
      if (removed > 0) await appendAudit(tx, audit)
      return removed
    })
  }

  /** How many are left. */
  async recoveryCodes(owner: string): Promise<number> {
    return isStorable(owner) ? await readCodeCount(this.#client, owner) : 0
  }

  /** Earlier codes become invalid. False, and nothing is written, for a user without a factor. */
  async replaceRecoveryCodes(owner: string, codes: readonly string[], audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(owner)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await findByOwner.first(tx, { owner })) === undefined) return false
      await deleteCodes.run(tx, { owner })
      await addCodes(tx, owner, codes)
      await appendAudit(tx, audit)
      return true
    })
  }

  /** True once for each code. */
  async useRecoveryCode(owner: string, code: string, audit: readonly AuditEntry[]): Promise<boolean> {
    if (!isStorable(owner) || !isStorable(code)) return false
    return await this.#client.transaction(async (tx) => {
      if ((await deleteCode.run(tx, { owner, hash: code })) === 0) return false
      await appendAudit(tx, audit)
      return true
    })
  }
}

/** All factors of a user have the name of the last login with one of them, and no other user has it. */
async function moveName(tx: DatabaseTransaction, factor: OwnerName): Promise<void> {
  await takeName.run(tx, factor)
  await giveName.run(tx, factor)
}

const readCodeCount = async (reader: DatabaseReader, owner: string): Promise<number> =>
  Number((await countCodes.first(reader, { owner }))?.count ?? 0)

const addCodes = (tx: DatabaseTransaction, owner: string, codes: readonly string[]): void =>
  insertCodes.run(
    tx,
    codes.map((hash) => ({ owner, hash })),
  )

const findByOwner = statement<{ owner: string }, FactorRow>(
  `select ${columns(['id', 'owner', 'kind', 'name', 'data', 'counter', 'created', 'lastUsed'])}
   from second_factors where owner = :owner order by place`,
)
/** At the next place, which only one concurrent transaction can take. */
const insert = statement<NewStoredFactor & { readonly limit: number }, { id: string }>(
  (on) => `insert into second_factors (id, owner, owner_name, place, kind, name, data, counter, created)
    select cast(:id as text), cast(:owner as text), cast(:ownerName as text), coalesce(max(place) + 1, 0),
      cast(:kind as text), cast(:name as text), cast(:data as text), cast(:counter as bigint), ${on.now}
    from second_factors where owner = :owner
    having count(*) < cast(:limit as integer)
    on conflict do nothing
    returning id`,
)
const moveCounter = statement<FactorKey & { readonly from: number; readonly to: number }>(
  (on) => `update second_factors set counter = :to, last_used = ${on.now}
    where id = :id and owner = :owner and counter = :from`,
)
const rename = statement<FactorKey & { readonly name: string }>(
  `update second_factors set name = :name where id = :id and owner = :owner`,
)
const deleteById = statement<FactorKey>(`delete from second_factors where id = :id and owner = :owner`)
const deleteByOwner = statement<{ owner: string }>(`delete from second_factors where owner = :owner`)
const takeName = statement<OwnerName>(
  `update second_factors set owner_name = null where owner_name = :ownerName and owner <> :owner`,
)
const giveName = statement<OwnerName>(`update second_factors set owner_name = :ownerName where owner = :owner`)
const findOwnersByName = statement<{ ownerName: string }, { owner: string }>(
  `select distinct owner from second_factors where owner_name = :ownerName`,
)

const insertCodes = new RowInsert<{ readonly owner: string; readonly hash: string }>('recovery_codes', [
  'owner',
  'hash',
])
const countCodes = statement<{ owner: string }, { count: number }>(
  `select count(*) as count from recovery_codes where owner = :owner`,
)
const deleteCode = statement<{ owner: string; hash: string }>(
  `delete from recovery_codes where owner = :owner and hash = :hash`,
)
const deleteCodes = statement<{ owner: string }>(`delete from recovery_codes where owner = :owner`)
