import type { SqlClient } from '#database/sql-client.ts'
import {
  columns,
  deletedAtOnce,
  deleteInParts,
  inserted,
  type Statement,
  statement,
  withoutNulls,
} from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'

/** Identifies a record of one of our issuers. */
export interface IssuerKey {
  readonly issuer: string
  /** What it is: a code, a grant, a refresh token. */
  readonly model: string
  /** The hash of its id. */
  readonly id: string
}

/** A code, grant or token that an issuer stores between two requests. */
export interface IssuerRecord extends IssuerKey {
  /** The hash of the grant that it belongs to and is deleted with. */
  readonly grantId?: string
  /** The hash of the code that a user types for it. */
  readonly userCode?: string
  /** Encrypted by the caller. */
  readonly data: string
  readonly expires: Date
}

export interface StoredIssuerRecord extends IssuerRecord {
  /** Increases with every change. */
  readonly version: number
  /** When it was consumed; a record can be consumed once. */
  readonly consumed: Date | undefined
}

interface RecordRow extends IssuerKey {
  readonly grantId: string | null
  readonly userCode: string | null
  readonly data: string
  readonly version: number
  readonly consumed: number | null
  readonly expires: number
}

type AtTime = { readonly now: number }

export class IssuerStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Inserts a record, or replaces the one with its key, which stays consumed if it was. With an expected version,
   * only that version is replaced (0: none, or one that has expired): false, and nothing changes, if there is
   * another.
   */
  async put(record: IssuerRecord, expected?: { readonly version: number; readonly now: Date }): Promise<boolean> {
    assertStorable('issuer', record.issuer)
    assertStorable('id', record.id)
    const row = toRow(record)
    if (expected === undefined) return await this.#changes(put, row)
    const { version, now } = expected
    if (version === 0) return await this.#changes(insert, { ...row, now: now.getTime() })
    return await this.#changes(replace, { ...row, version })
  }

  /** Undefined when absent or expired. */
  async find({ issuer, model, id }: IssuerKey, now: Date): Promise<StoredIssuerRecord | undefined> {
    if (!isStorable(issuer) || !isStorable(model) || !isStorable(id)) return undefined
    const row = await findByKey.first(this.#client, { issuer, model, id, now: now.getTime() })
    return row && fromRow(row)
  }

  /** Undefined when absent or expired. */
  async findByUserCode(
    { issuer, model, userCode }: Pick<IssuerKey, 'issuer' | 'model'> & { readonly userCode: string },
    now: Date,
  ): Promise<StoredIssuerRecord | undefined> {
    if (!isStorable(userCode)) return undefined
    const row = await findByUserCode.first(this.#client, { issuer, model, userCode, now: now.getTime() })
    return row && fromRow(row)
  }

  /** True for the first of all callers, whose data replace the record's. False when it was consumed before, is absent or has expired. */
  async consume({ issuer, model, id }: IssuerKey, now: Date, data?: string): Promise<boolean> {
    if (!isStorable(issuer) || !isStorable(model) || !isStorable(id)) return false
    return await this.#changes(consume, { issuer, model, id, now: now.getTime(), data: data ?? null })
  }

  async delete({ issuer, model, id }: IssuerKey): Promise<void> {
    if (!isStorable(issuer) || !isStorable(model) || !isStorable(id)) return
    await this.#changes(deleteByKey, { issuer, model, id })
  }

  /** Deletes what belongs to a grant; returns how many. */
  async deleteOfGrant({
    issuer,
    model,
    grantId,
  }: Pick<IssuerKey, 'issuer' | 'model'> & { readonly grantId: string }): Promise<number> {
    if (!isStorable(grantId)) return 0
    return await this.#client.transaction((tx) => deleteByGrant.run(tx, { issuer, model, grantId }))
  }

  /** Returns how many were deleted. */
  async deleteExpired(now: Date): Promise<number> {
    return await deleteInParts(this.#client, deleteExpired, { now: now.getTime() })
  }

  async #changes<P extends object>(statement: Statement<P>, values: P): Promise<boolean> {
    return (await this.#client.transaction((tx) => statement.run(tx, values))) > 0
  }
}

const toRow = ({ issuer, model, id, grantId, userCode, data, expires }: IssuerRecord): RecordRow => ({
  issuer,
  model,
  id,
  grantId: grantId ?? null,
  userCode: userCode ?? null,
  data,
  version: 1,
  consumed: null,
  expires: expires.getTime(),
})

const fromRow = ({ consumed, expires, ...same }: RecordRow): StoredIssuerRecord => ({
  ...withoutNulls(same),
  consumed: consumed === null ? undefined : new Date(consumed),
  expires: new Date(expires),
})

const stored = ['issuer', 'model', 'id', 'grantId', 'userCode', 'data', 'version', 'consumed', 'expires'] as const
const byKey = `issuer = :issuer and model = :model and id = :id`

const upsert = `insert into issuer_records ${inserted(stored)}
  on conflict (issuer, model, id) do update
  set grant_id = excluded.grant_id, user_code = excluded.user_code, data = excluded.data, expires = excluded.expires,
    version = issuer_records.version + 1`
const put = statement<RecordRow>(upsert)
const insert = statement<RecordRow & AtTime>(`${upsert}, consumed = null where issuer_records.expires <= :now`)
const replace = statement<RecordRow>(
  `update issuer_records
   set grant_id = :grantId, user_code = :userCode, data = :data, expires = :expires, version = version + 1
   where ${byKey} and version = :version`,
)
const findByKey = statement<IssuerKey & AtTime, RecordRow>(
  `select ${columns(stored)} from issuer_records where ${byKey} and expires > :now`,
)
const findByUserCode = statement<Pick<RecordRow, 'issuer' | 'model'> & { userCode: string } & AtTime, RecordRow>(
  `select ${columns(stored)} from issuer_records
   where issuer = :issuer and user_code = :userCode and model = :model and expires > :now limit 1`,
)
const consume = statement<IssuerKey & AtTime & { data: string | null }>(
  `update issuer_records set consumed = :now, data = coalesce(:data, data), version = version + 1
   where ${byKey} and consumed is null and expires > :now`,
)
const deleteByKey = statement<IssuerKey>(`delete from issuer_records where ${byKey}`)
const deleteByGrant = statement<Pick<RecordRow, 'issuer' | 'model'> & { grantId: string }>(
  `delete from issuer_records where issuer = :issuer and grant_id = :grantId and model = :model`,
)
const deleteExpired = statement<AtTime>(
  `delete from issuer_records where (issuer, model, id) in
     (select issuer, model, id from issuer_records where expires <= :now limit ${deletedAtOnce})`,
)
