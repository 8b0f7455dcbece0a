import type { DatabaseReader, SqlClient } from '#database/sql-client.ts'
import { statement } from '#database/statement.ts'
import type { AuditRecord } from '#sdk/audit/audit-entry.ts'
import { auditChains, type ChainedRecord, chainedRecord, countWithin, readChains, recordSize } from './audit-chain.ts'
import { toEntries } from './audit-record.ts'

/** The number of the last record that a sink has, by chain; 0 if absent. */
export type SinkPositions = ReadonlyMap<number, number>

export interface SinkTurn {
  /** Consecutive failures before this turn. */
  readonly failures: number
  readonly positions: SinkPositions
}

interface SinkLag {
  /** Records that the sink does not have yet. */
  readonly records: number
  /** When the oldest of them was written. */
  readonly oldest?: Date
}

/** The progress of audit sinks, and the process that feeds each of them: the audit itself is the outbox. */
export class AuditSinkStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /**
   * Replaces the set of configured sinks. A new one gets the whole audit, or what is written from now on; one that
   * was configured before continues at its position. One that is set aside stays configured, so that nothing is removed
   * before it was sent, but is not added.
   */
  async configure(sinks: ReadonlyMap<string, 'beginning' | 'now'>, setAside: readonly string[] = []): Promise<void> {
    const known = new Map((await findNames.all(this.#client, {})).map(({ name, configured }) => [name, configured]))
    const stays = (name: string): boolean => sinks.has(name) || (setAside.includes(name) && known.get(name) === 1)
    const wanted = new Set([...sinks.keys(), ...known.keys()])
    if (![...wanted].some((name) => known.get(name) !== (stays(name) ? 1 : 0))) return
    const heads = new Map((await readChains(this.#client)).map(({ chain, seq }) => [chain, seq]))
    await this.#client.transaction(async (tx) => {
      for (const [name, start] of sinks) {
        if (known.has(name)) continue
        await insert.run(tx, { name, positions: writePositions(start === 'now' ? heads : new Map()) })
      }
      for (const name of known.keys()) await setConfigured.run(tx, { name, configured: stays(name) ? 1 : 0 })
    })
  }

  /**
   * The next records, oldest first, without gaps: those of one chain in order, and a record never before one that
   * was committed when it was begun. At least one, and no more than have about `bytes` together.
   */
  async read(after: SinkPositions, limit: number, bytes?: number): Promise<readonly AuditRecord[]> {
    const values: Record<string, number> = { limit }
    for (const chain of auditChains) values[`after${chain}`] = after.get(chain) ?? 0
    if (bytes !== undefined) values['limit'] = countWithin(bytes, await findSizes.all(this.#client, values))
    const found = await findNext.all(this.#client, values)
    return found.map(({ chain, chainSeq, hash, ...record }) => ({
      link: { chain, number: chainSeq, hash },
      rows: toEntries(record),
    }))
  }

  async lag(sink: string): Promise<SinkLag> {
    const row = await findPositions.first(this.#client, { name: sink })
    if (row === undefined) return { records: 0 }
    const positions = readPositions(row.positions)
    const records = (await readChains(this.#client)).reduce(
      (sum, { chain, seq, baseSeq }) => sum + Math.max(0, seq - Math.max(baseSeq, positions.get(chain) ?? 0)),
      0,
    )
    if (records === 0) return { records }
    const [first] = await this.read(positions, 1)
    const time = first?.rows[0]?.time
    return time === undefined ? { records } : { records, oldest: time }
  }

  /**
   * Claims the feeding of the sink, or extends the claim. Undefined while another has it, or before the time of its
   * next attempt.
   */
  async claim(
    name: string,
    owner: string,
    { now, until }: { readonly now: Date; readonly until: Date },
  ): Promise<SinkTurn | undefined> {
    const values = { name, owner, now: now.getTime(), until: until.getTime() }
    const turn = await this.#client.transaction((tx) => claim.first(tx, values))
    return turn && { failures: turn.failures, positions: readPositions(turn.positions) }
  }

  /** The sink has everything up to there. False, and nothing is changed, for an owner that lost its claim. */
  async advance(name: string, owner: string, positions: SinkPositions): Promise<boolean> {
    const values = { name, owner, positions: writePositions(positions) }
    return (await this.#client.transaction((tx) => advance.run(tx, values))) > 0
  }

  /** Ends the claim, if the owner still has it. */
  async release(
    name: string,
    owner: string,
    { failures, retryAt }: { readonly failures: number; readonly retryAt?: Date },
  ): Promise<void> {
    const values = { name, owner, failures, retryAt: retryAt?.getTime() ?? 0 }
    await this.#client.transaction((tx) => release.run(tx, values))
  }
}

/** The positions of all configured sinks, by name. */
export async function findReceived(reader: DatabaseReader): Promise<ReadonlyMap<string, SinkPositions>> {
  const rows = await findConfigured.all(reader, {})
  return new Map(rows.map(({ name, positions }) => [name, readPositions(positions)]))
}

const readPositions = (text: string): Map<number, number> =>
  new Map(Object.entries(JSON.parse(text) as Record<string, number>).map(([chain, number]) => [Number(chain), number]))

const writePositions = (positions: SinkPositions): string => JSON.stringify(Object.fromEntries(positions))

const findNames = statement<object, { name: string; configured: number }>(`select name, configured from audit_sinks`)
const findConfigured = statement<object, { name: string; positions: string }>(
  `select name, positions from audit_sinks where configured = 1 order by name`,
)
const findPositions = statement<{ name: string }, { positions: string }>(
  `select positions from audit_sinks where name = :name`,
)
const insert = statement<{ name: string; positions: string }>(
  `insert into audit_sinks (name, configured, positions, owner, lease_until, failures, retry_at)
   values (:name, 1, :positions, '', 0, 0, 0) on conflict do nothing`,
)
const setConfigured = statement<{ name: string; configured: number }>(
  `update audit_sinks set configured = :configured where name = :name`,
)

/** One statement, so one snapshot of all chains. */
const nextRecords = (columns: string): string =>
  `${auditChains
    .map(
      (chain) => `select * from
        (select seq, ${columns} from audit_rows where chain = ${chain} and chain_seq > :after${chain}
         order by chain_seq limit cast(:limit as bigint)) as chain`,
    )
    .join(' union all ')}
   order by seq limit cast(:limit as bigint)`
const findNext = statement<Readonly<Record<string, number>>, ChainedRecord>(nextRecords(chainedRecord))
const findSizes = statement<Readonly<Record<string, number>>, { size: number }>(nextRecords(recordSize))

const claim = statement<
  { name: string; owner: string; now: number; until: number },
  { failures: number; positions: string }
>(
  `update audit_sinks set owner = :owner, lease_until = :until
   where name = :name and retry_at <= :now and (owner = :owner or lease_until <= :now)
   returning failures, positions`,
)
const advance = statement<{ name: string; owner: string; positions: string }>(
  `update audit_sinks set positions = :positions where name = :name and owner = :owner`,
)
const release = statement<{ name: string; owner: string; failures: number; retryAt: number }>(
  `update audit_sinks set owner = '', lease_until = 0, failures = :failures, retry_at = :retryAt
   where name = :name and owner = :owner`,
)
