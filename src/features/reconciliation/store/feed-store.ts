import { auditChains, isTokenChain, readChains } from '#audit/store/audit-chain.ts'
import { AuditSinkStore, type SinkPositions } from '#audit/store/audit-sink-store.ts'
import type { SqlClient } from '#database/sql-client.ts'
import { statement } from '#database/statement.ts'
import { isStorable } from '#database/text-keys.ts'
import type { AuditRecord } from '#sdk/audit/audit-entry.ts'

/** How many records, and about how many bytes, are read at once. */
const recordsAtOnce = 500
const bytesAtOnce = 1_000_000
/** A feed that is further behind is not caught up with record by record. */
const mostBehind = 20_000

/** The next changes for a reconciliation. */
export interface FeedPart {
  readonly records: readonly AuditRecord[]
  /** After these records. */
  readonly positions: SinkPositions
}

/** The audit as the feed of changes of each reconciliation, which has a position in it. Decisions about tokens are left out. */
export class FeedStore {
  readonly #client: SqlClient
  readonly #audit: AuditSinkStore

  constructor(client: SqlClient) {
    this.#client = client
    this.#audit = new AuditSinkStore(client)
  }

  /** The end of the feed now. */
  async end(): Promise<SinkPositions> {
    const chains = await readChains(this.#client)
    return new Map(chains.flatMap(({ chain, seq }) => (isTokenChain(chain) ? [] : [[chain, seq] as const])))
  }

  /** Undefined without a position, if records after it were removed, or if there are too many to read them one by one. */
  async read(reconciliation: string): Promise<FeedPart | undefined> {
    const positions = await this.#positions(reconciliation)
    if (positions === undefined) return undefined
    const chains = (await readChains(this.#client)).filter(({ chain }) => !isTokenChain(chain))
    const at = (chain: number): number => positions.get(chain) ?? 0
    if (chains.some(({ chain, baseSeq }) => baseSeq > at(chain))) return undefined
    const behind = chains.reduce((sum, { chain, seq }) => sum + Math.max(0, seq - at(chain)), 0)
    if (behind > mostBehind) return undefined
    if (behind === 0) return { records: [], positions }
    const after = new Map(positions)
    for (const chain of auditChains) if (isTokenChain(chain)) after.set(chain, Number.MAX_SAFE_INTEGER)
    const records = await this.#audit.read(after, recordsAtOnce, bytesAtOnce)
    const moved = new Map(positions)
    for (const { link } of records) moved.set(link.chain, link.number)
    return { records, positions: moved }
  }

  /** Begins the feed, or begins it again. */
  async start(reconciliation: string, positions: SinkPositions): Promise<void> {
    const values = { reconciliation, positions: JSON.stringify([...positions]) }
    await this.#client.transaction((tx) => upsert.run(tx, values))
  }

  /** Does nothing without a position: a plan of the people before it has failed meanwhile. */
  async move(reconciliation: string, positions: SinkPositions): Promise<void> {
    const values = { reconciliation, positions: JSON.stringify([...positions]) }
    await this.#client.transaction((tx) => update.run(tx, values))
  }

  async #positions(reconciliation: string): Promise<SinkPositions | undefined> {
    const row = isStorable(reconciliation) ? await find.first(this.#client, { reconciliation }) : undefined
    return row && new Map(JSON.parse(row.positions) as [number, number][])
  }
}

const find = statement<{ reconciliation: string }, { positions: string }>(
  `select positions from reconciliation_feeds where reconciliation = :reconciliation`,
)
const update = statement<{ reconciliation: string; positions: string }>(
  `update reconciliation_feeds set positions = :positions where reconciliation = :reconciliation`,
)
const upsert = statement<{ reconciliation: string; positions: string }>(
  `insert into reconciliation_feeds (reconciliation, positions) values (:reconciliation, :positions)
   on conflict (reconciliation) do update set positions = excluded.positions`,
)
