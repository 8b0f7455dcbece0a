import { sql } from 'kysely'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { databaseNow } from '#storage/client/database-time.ts'
import type { SqlClient, SqlQuery } from '#storage/client/sql-client.ts'
import { assertStorable, isStorable } from '#storage/client/text-keys.ts'
import type { KeyStore, StoredKeys } from '#storage/key-store.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

const columns = ['endpoint', 'version', 'ring', 'publications', 'updated'] as const
const maxListed = 500

interface KeyRow {
  readonly endpoint: string
  readonly version: number
  readonly ring: string
  readonly publications: string
  readonly updated: number
}

interface Owned {
  readonly endpoint: string
  readonly worker: string
}

const statements = perDialect((dialect) => {
  const now = databaseNow(dialect)
  return {
    get: fixed<{ endpoint: string }, KeyRow>(dialect, (db, at) =>
      db.selectFrom('endpoint_keys').select(columns).where('endpoint', '=', at('endpoint')),
    ),
    list: fixed<object, KeyRow>(dialect, (db) =>
      db.selectFrom('endpoint_keys').select(columns).orderBy('endpoint').limit(maxListed),
    ),
    insert: fixed<{ endpoint: string; ring: string }, unknown>(dialect, (db, at) =>
      db
        .insertInto('endpoint_keys')
        .values({
          endpoint: at('endpoint'),
          version: 1,
          ring: at('ring'),
          publications: '{}',
          worker: null,
          lease_until: 0,
          updated: now,
        })
        .onConflict((conflict) => conflict.column('endpoint').doNothing()),
    ),
    swap: fixed<{ endpoint: string; version: number; ring: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('endpoint_keys')
        .set({ version: sql<number>`version + 1`, ring: at('ring'), updated: now })
        .where('endpoint', '=', at('endpoint'))
        .where('version', '=', at('version')),
    ),
    claim: fixed<Owned & { lease: number }, unknown>(dialect, (db, at) =>
      db
        .updateTable('endpoint_keys')
        .set({ worker: at('worker'), lease_until: sql<number>`${now} + cast(${at('lease')} as bigint)` })
        .where('endpoint', '=', at('endpoint'))
        .where((eb) => eb.or([eb('lease_until', '<=', now), eb('worker', '=', at('worker'))])),
    ),
    record: fixed<Owned & { publications: string }, unknown>(dialect, (db, at) =>
      db
        .updateTable('endpoint_keys')
        .set({ publications: at('publications') })
        .where('endpoint', '=', at('endpoint'))
        .where('worker', '=', at('worker'))
        .where('lease_until', '>', now),
    ),
    release: fixed<Owned, unknown>(dialect, (db, at) =>
      db
        .updateTable('endpoint_keys')
        .set({ worker: null, lease_until: 0 })
        .where('endpoint', '=', at('endpoint'))
        .where('worker', '=', at('worker')),
    ),
  }
})

export class SqlKeyStore implements KeyStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  get #statements(): ReturnType<typeof statements> {
    return statements(this.#client.dialect)
  }

  async get(endpoint: string): Promise<StoredKeys | undefined> {
    if (!isStorable(endpoint)) return undefined
    const [row] = await this.#client.query(this.#statements.get({ endpoint }))
    return row && toKeys(row)
  }

  async list(): Promise<readonly StoredKeys[]> {
    return (await this.#client.query(this.#statements.list({}))).map(toKeys)
  }

  async swap(endpoint: string, version: number, ring: JsonObject): Promise<boolean> {
    assertStorable('endpoint', endpoint)
    const text = JSON.stringify(ring)
    const { insert, swap } = this.#statements
    return this.#changed(version === 0 ? insert({ endpoint, ring: text }) : swap({ endpoint, version, ring: text }))
  }

  claim(endpoint: string, worker: string, leaseMillis: number): Promise<boolean> {
    return this.#changed(this.#statements.claim({ endpoint, worker, lease: Math.trunc(leaseMillis) }))
  }

  record(endpoint: string, worker: string, publications: JsonObject): Promise<boolean> {
    return this.#changed(this.#statements.record({ endpoint, worker, publications: JSON.stringify(publications) }))
  }

  async release(endpoint: string, worker: string): Promise<void> {
    await this.#changed(this.#statements.release({ endpoint, worker }))
  }

  async #changed(query: SqlQuery<unknown>): Promise<boolean> {
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }
}

const toKeys = ({ endpoint, version, ring, publications, updated }: KeyRow): StoredKeys => ({
  endpoint,
  version,
  ring: readObject(ring, endpoint),
  publications: readObject(publications, endpoint),
  updated: new Date(updated),
})

function readObject(text: string, endpoint: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (isJsonObject(value)) return value
  throw new GatewayError('INTERNAL', `the stored keys of endpoint "${endpoint}" are damaged`)
}
