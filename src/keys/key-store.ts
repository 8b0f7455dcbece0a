import type { SqlClient } from '#database/sql-client.ts'
import { columns, type Statement, statement } from '#database/statement.ts'
import { assertStorable, isStorable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

const maxListed = 500

/** The keys of one endpoint. */
interface StoredKeys {
  readonly endpoint: string
  /** Counts the changes of `ring`. */
  readonly version: number
  readonly ring: JsonObject
  /** The result of publishing, by destination. */
  readonly publications: JsonObject
  readonly updated: Date
}

interface KeyRow {
  readonly endpoint: string
  readonly version: number
  readonly ring: string
  readonly publications: string
  readonly updated: number
}

interface Publisher {
  readonly endpoint: string
  readonly worker: string
}

/**
 * The keys of token endpoints, a whole ring at a time. A change applies to the version that was read or not at all, so
 * that an invariant of a ring holds for all processes. The private parts are encrypted by the caller.
 */
export class KeyStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  async get(endpoint: string): Promise<StoredKeys | undefined> {
    if (!isStorable(endpoint)) return undefined
    const row = await findByEndpoint.first(this.#client, { endpoint })
    return row && fromRow(row)
  }

  /** By name, at most 500. */
  async list(): Promise<readonly StoredKeys[]> {
    return (await findAll.all(this.#client, {})).map(fromRow)
  }

  /** Version 0 means that the ring does not exist. False, and nothing changes, if the stored version differs. */
  async swap(endpoint: string, version: number, ring: JsonObject): Promise<boolean> {
    assertStorable('endpoint', endpoint)
    const values = { endpoint, version, ring: JSON.stringify(ring) }
    return await this.#changes(version === 0 ? insert : replaceRing, values)
  }

  /** Leases the right to publish to one process. The worker that has it gets it again. */
  async claim(endpoint: string, worker: string, leaseMillis: number): Promise<boolean> {
    return await this.#changes(claim, { endpoint, worker, lease: Math.trunc(leaseMillis) })
  }

  /** False, and nothing changes, when the worker's lease has expired or another worker has the right. */
  async record(endpoint: string, worker: string, publications: JsonObject): Promise<boolean> {
    return await this.#changes(replacePublications, { endpoint, worker, publications: JSON.stringify(publications) })
  }

  async release(endpoint: string, worker: string): Promise<void> {
    await this.#changes(release, { endpoint, worker })
  }

  async #changes<P extends object>(statement: Statement<P>, values: P): Promise<boolean> {
    return (await this.#client.transaction((tx) => statement.run(tx, values))) > 0
  }
}

const fromRow = ({ endpoint, version, ring, publications, updated }: KeyRow): StoredKeys => ({
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

const stored = columns(['endpoint', 'version', 'ring', 'publications', 'updated'])

const findByEndpoint = statement<{ endpoint: string }, KeyRow>(
  `select ${stored} from endpoint_keys where endpoint = :endpoint`,
)
const findAll = statement<object, KeyRow>(`select ${stored} from endpoint_keys order by endpoint limit ${maxListed}`)
const insert = statement<{ endpoint: string; ring: string }>(
  (on) => `insert into endpoint_keys (endpoint, version, ring, publications, worker, lease_until, updated)
    values (:endpoint, 1, :ring, '{}', null, 0, ${on.now}) on conflict (endpoint) do nothing`,
)
const replaceRing = statement<{ endpoint: string; version: number; ring: string }>(
  (on) => `update endpoint_keys set version = version + 1, ring = :ring, updated = ${on.now}
    where endpoint = :endpoint and version = :version`,
)
const claim = statement<Publisher & { readonly lease: number }>(
  (on) => `update endpoint_keys set worker = :worker, lease_until = ${on.now} + cast(:lease as bigint)
    where endpoint = :endpoint and (lease_until <= ${on.now} or worker = :worker)`,
)
const replacePublications = statement<Publisher & { readonly publications: string }>(
  (on) => `update endpoint_keys set publications = :publications
    where endpoint = :endpoint and worker = :worker and lease_until > ${on.now}`,
)
const release = statement<Publisher>(
  `update endpoint_keys set worker = null, lease_until = 0 where endpoint = :endpoint and worker = :worker`,
)
