import { sql } from 'kysely'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import type { IssuerKey, IssuerRecord, IssuerStore, StoredIssuerRecord } from '#storage/issuer-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { pruneAtOnce, pruneInParts } from '#storage/sql/prune.ts'
import { fixed, type Place } from '#storage/sql/queries.ts'

interface Row {
  readonly issuer: string
  readonly model: string
  readonly id: string
  readonly grant_id: string | null
  readonly user_code: string | null
  readonly data: string
  readonly expires: number
}

type StoredRow = Row & { readonly version: number; readonly consumed: number | null }
type Key = Pick<Row, 'issuer' | 'model' | 'id'>

const columns = ['issuer', 'model', 'id', 'grant_id', 'user_code', 'data', 'version', 'consumed', 'expires'] as const

const newRecord = (at: Place<Row>) => ({
  issuer: at('issuer'),
  model: at('model'),
  id: at('id'),
  grant_id: at('grant_id'),
  user_code: at('user_code'),
  data: at('data'),
  version: 1,
  consumed: null,
  expires: at('expires'),
})

const statements = perDialect((dialect) => ({
  put: fixed<Row, unknown>(dialect, (db, at) =>
    db
      .insertInto('issuer_records')
      .values(newRecord(at))
      .onConflict((conflict) =>
        conflict.columns(['issuer', 'model', 'id']).doUpdateSet(({ ref }) => ({
          grant_id: ref('excluded.grant_id'),
          user_code: ref('excluded.user_code'),
          data: ref('excluded.data'),
          expires: ref('excluded.expires'),
          version: sql<number>`issuer_records.version + 1`,
        })),
      ),
  ),
  insert: fixed<Row & { now: number }, unknown>(dialect, (db, at) =>
    db
      .insertInto('issuer_records')
      .values(newRecord(at))
      .onConflict((conflict) =>
        conflict
          .columns(['issuer', 'model', 'id'])
          .doUpdateSet(({ ref }) => ({
            grant_id: ref('excluded.grant_id'),
            user_code: ref('excluded.user_code'),
            data: ref('excluded.data'),
            expires: ref('excluded.expires'),
            consumed: null,
            version: sql<number>`issuer_records.version + 1`,
          }))
          .where('issuer_records.expires', '<=', at('now')),
      ),
  ),
  replace: fixed<Row & { version: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('issuer_records')
      .set({
        grant_id: at('grant_id'),
        user_code: at('user_code'),
        data: at('data'),
        expires: at('expires'),
        version: sql<number>`version + 1`,
      })
      .where('issuer', '=', at('issuer'))
      .where('model', '=', at('model'))
      .where('id', '=', at('id'))
      .where('version', '=', at('version')),
  ),
  find: fixed<Key & { now: number }, StoredRow>(dialect, (db, at) =>
    db
      .selectFrom('issuer_records')
      .select(columns)
      .where('issuer', '=', at('issuer'))
      .where('model', '=', at('model'))
      .where('id', '=', at('id'))
      .where('expires', '>', at('now')),
  ),
  findByUserCode: fixed<{ issuer: string; model: string; user_code: string; now: number }, StoredRow>(
    dialect,
    (db, at) =>
      db
        .selectFrom('issuer_records')
        .select(columns)
        .where('issuer', '=', at('issuer'))
        .where('user_code', '=', at('user_code'))
        .where('model', '=', at('model'))
        .where('expires', '>', at('now'))
        .limit(1),
  ),
  consume: fixed<Key & { now: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('issuer_records')
      .set({ consumed: at('now'), version: sql<number>`version + 1` })
      .where('issuer', '=', at('issuer'))
      .where('model', '=', at('model'))
      .where('id', '=', at('id'))
      .where('consumed', 'is', null)
      .where('expires', '>', at('now')),
  ),
  delete: fixed<Key, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('issuer_records')
      .where('issuer', '=', at('issuer'))
      .where('model', '=', at('model'))
      .where('id', '=', at('id')),
  ),
  deleteOfGrant: fixed<{ issuer: string; model: string; grant_id: string }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('issuer_records')
      .where('issuer', '=', at('issuer'))
      .where('grant_id', '=', at('grant_id'))
      .where('model', '=', at('model')),
  ),
  prune: fixed<{ now: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('issuer_records')
      .where(({ eb, refTuple }) =>
        eb(
          refTuple('issuer', 'model', 'id'),
          'in',
          eb
            .selectFrom('issuer_records')
            .select(['issuer', 'model', 'id'])
            .where('expires', '<=', at('now'))
            .limit(pruneAtOnce)
            .$asTuple('issuer', 'model', 'id'),
        ),
      ),
  ),
}))

export class SqlIssuerStore implements IssuerStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async put(record: IssuerRecord, expected?: { readonly version: number; readonly now: Date }): Promise<boolean> {
    assertStorable('issuer', record.issuer)
    assertStorable('id', record.id)
    const row = rowOf(record)
    const { put, insert, replace } = this.#statements
    let query = put(row)
    if (expected !== undefined) {
      const { version, now } = expected
      query = version === 0 ? insert({ ...row, now: now.getTime() }) : replace({ ...row, version })
    }
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async find(key: IssuerKey, now: Date): Promise<StoredIssuerRecord | undefined> {
    if (!isKey(key)) return undefined
    const [row] = await this.#client.query(this.#statements.find({ ...keyOf(key), now: now.getTime() }))
    return row === undefined ? undefined : recordOf(row)
  }

  async findByUserCode(
    { issuer, model, userCode }: Pick<IssuerKey, 'issuer' | 'model'> & { readonly userCode: string },
    now: Date,
  ): Promise<StoredIssuerRecord | undefined> {
    if (!isStorable(userCode)) return undefined
    const query = this.#statements.findByUserCode({ issuer, model, user_code: userCode, now: now.getTime() })
    const [row] = await this.#client.query(query)
    return row === undefined ? undefined : recordOf(row)
  }

  async consume(key: IssuerKey, now: Date): Promise<boolean> {
    if (!isKey(key)) return false
    const query = this.#statements.consume({ ...keyOf(key), now: now.getTime() })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async delete(key: IssuerKey): Promise<void> {
    if (!isKey(key)) return
    await this.#client.transaction((tx) => tx.run(this.#statements.delete(keyOf(key))))
  }

  async deleteOfGrant({
    issuer,
    model,
    grantId,
  }: Pick<IssuerKey, 'issuer' | 'model'> & { readonly grantId: string }): Promise<number> {
    if (!isStorable(grantId)) return 0
    const query = this.#statements.deleteOfGrant({ issuer, model, grant_id: grantId })
    return await this.#client.transaction((tx) => tx.run(query))
  }

  deleteExpired(now: Date): Promise<number> {
    return pruneInParts(this.#client, this.#statements.prune({ now: now.getTime() }))
  }
}

const isKey = ({ issuer, model, id }: IssuerKey): boolean => isStorable(issuer) && isStorable(model) && isStorable(id)

const keyOf = ({ issuer, model, id }: IssuerKey): Key => ({ issuer, model, id })

const rowOf = ({ issuer, model, id, grantId, userCode, data, expires }: IssuerRecord): Row => ({
  issuer,
  model,
  id,
  grant_id: grantId ?? null,
  user_code: userCode ?? null,
  data,
  expires: expires.getTime(),
})

const recordOf = ({ grant_id, user_code, consumed, expires, ...row }: StoredRow): StoredIssuerRecord => ({
  ...row,
  ...(grant_id === null ? {} : { grantId: grant_id }),
  ...(user_code === null ? {} : { userCode: user_code }),
  consumed: consumed === null ? undefined : new Date(consumed),
  expires: new Date(expires),
})
