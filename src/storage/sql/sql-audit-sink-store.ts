import { sql } from 'kysely'
import type { AuditSinkStore, LinkedRecord, SinkLag, SinkPositions, SinkTurn } from '#storage/audit-sink-store.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { auditChains, type ChainedRecord } from '#storage/sql/audit-chain.ts'
import { auditColumns, toRows } from '#storage/sql/audit-records.ts'
import { readChains } from '#storage/sql/audit-sealing.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

interface Claim {
  readonly name: string
  readonly owner: string
  readonly now: number
  readonly until: number
}

interface Release {
  readonly name: string
  readonly owner: string
  readonly failures: number
  readonly retry_at: number
}

const statements = perDialect((dialect) => ({
  names: fixed<object, { name: string; configured: number }>(dialect, (db) =>
    db.selectFrom('audit_sinks').select(['name', 'configured']),
  ),
  create: fixed<{ name: string; positions: string }, unknown>(dialect, (db, at) =>
    db
      .insertInto('audit_sinks')
      .values({
        name: at('name'),
        configured: 1,
        positions: at('positions'),
        owner: '',
        lease_until: 0,
        failures: 0,
        retry_at: 0,
      })
      .onConflict((conflict) => conflict.doNothing()),
  ),
  mark: fixed<{ name: string; configured: number }, unknown>(dialect, (db, at) =>
    db
      .updateTable('audit_sinks')
      .set({ configured: at('configured') })
      .where('name', '=', at('name')),
  ),
  positions: fixed<{ name: string }, { positions: string }>(dialect, (db, at) =>
    db.selectFrom('audit_sinks').select('positions').where('name', '=', at('name')),
  ),
  /** One statement, so one snapshot of all chains. */
  read: fixed<Record<string, number>, ChainedRecord & { seq: number }>(dialect, (db, at) => {
    const columns = sql.join(['seq', 'chain', 'chain_seq', 'hash', ...auditColumns].map((name) => sql.ref(name)))
    const limit = sql`limit cast(${at('limit')} as bigint)`
    const ofChain = (chain: number) =>
      sql`select * from (
        select ${columns} from audit_rows where chain = ${sql.lit(chain)} and chain_seq > ${at(`after${chain}`)}
        order by chain_seq ${limit}) as chain`
    const all = sql.join(auditChains.map(ofChain), sql` union all `)
    return { compile: () => sql<ChainedRecord & { seq: number }>`${all} order by seq ${limit}`.compile(db) }
  }),
  claim: fixed<Claim, { failures: number; positions: string }>(dialect, (db, at) =>
    db
      .updateTable('audit_sinks')
      .set({ owner: at('owner'), lease_until: at('until') })
      .where('name', '=', at('name'))
      .where('retry_at', '<=', at('now'))
      .where((or) => or.or([or('owner', '=', at('owner')), or('lease_until', '<=', at('now'))]))
      .returning(['failures', 'positions']),
  ),
  advance: fixed<{ name: string; owner: string; positions: string }, unknown>(dialect, (db, at) =>
    db
      .updateTable('audit_sinks')
      .set({ positions: at('positions') })
      .where('name', '=', at('name'))
      .where('owner', '=', at('owner')),
  ),
  release: fixed<Release, unknown>(dialect, (db, at) =>
    db
      .updateTable('audit_sinks')
      .set({ owner: '', lease_until: 0, failures: at('failures'), retry_at: at('retry_at') })
      .where('name', '=', at('name'))
      .where('owner', '=', at('owner')),
  ),
}))

export class SqlAuditSinkStore implements AuditSinkStore {
  readonly #client: SqlClient
  readonly #statements: ReturnType<typeof statements>

  constructor(client: SqlClient) {
    this.#client = client
    this.#statements = statements(client.dialect)
  }

  async configure(sinks: ReadonlyMap<string, 'beginning' | 'now'>): Promise<void> {
    const { names, create, mark } = this.#statements
    const known = new Map((await this.#client.query(names({}))).map(({ name, configured }) => [name, configured]))
    const wanted = new Set([...sinks.keys(), ...known.keys()])
    if (![...wanted].some((name) => known.get(name) !== (sinks.has(name) ? 1 : 0))) return
    const heads = new Map((await readChains(this.#client)).map(({ chain, seq }) => [chain, seq]))
    await this.#client.transaction(async (tx) => {
      for (const [name, start] of sinks) {
        if (known.has(name)) continue
        await tx.run(create({ name, positions: writePositions(start === 'now' ? heads : new Map()) }))
      }
      for (const name of known.keys()) await tx.run(mark({ name, configured: sinks.has(name) ? 1 : 0 }))
    })
  }

  async read(after: SinkPositions, limit: number): Promise<readonly LinkedRecord[]> {
    const values: Record<string, number> = { limit }
    for (const chain of auditChains) values[`after${chain}`] = after.get(chain) ?? 0
    const found = await this.#client.query(this.#statements.read(values))
    return found.map(({ chain, chain_seq, hash, ...record }) => ({
      link: { chain, number: chain_seq, hash },
      rows: toRows(record),
    }))
  }

  async lag(sink: string): Promise<SinkLag> {
    const [row] = await this.#client.query(this.#statements.positions({ name: sink }))
    if (row === undefined) return { records: 0 }
    const positions = readPositions(row.positions)
    const chains = await readChains(this.#client)
    const records = chains
      .filter(({ chain }) => chain >= 0)
      .reduce(
        (sum, { chain, seq, base_seq }) => sum + Math.max(0, seq - Math.max(base_seq, positions.get(chain) ?? 0)),
        0,
      )
    if (records === 0) return { records }
    const [first] = await this.read(positions, 1)
    const time = first?.rows[0]?.time
    return time === undefined ? { records } : { records, oldest: time }
  }

  async claim(
    name: string,
    owner: string,
    { now, until }: { readonly now: Date; readonly until: Date },
  ): Promise<SinkTurn | undefined> {
    const query = this.#statements.claim({ name, owner, now: now.getTime(), until: until.getTime() })
    const [turn] = await this.#client.transaction((tx) => tx.query(query))
    return turn && { failures: turn.failures, positions: readPositions(turn.positions) }
  }

  async advance(name: string, owner: string, positions: SinkPositions): Promise<boolean> {
    const query = this.#statements.advance({ name, owner, positions: writePositions(positions) })
    return (await this.#client.transaction((tx) => tx.run(query))) > 0
  }

  async release(
    name: string,
    owner: string,
    { failures, retryAt }: { readonly failures: number; readonly retryAt?: Date },
  ): Promise<void> {
    const query = this.#statements.release({ name, owner, failures, retry_at: retryAt?.getTime() ?? 0 })
    await this.#client.transaction((tx) => tx.run(query))
  }
}

export const readPositions = (text: string): Map<number, number> =>
  new Map(Object.entries(JSON.parse(text) as Record<string, number>).map(([chain, number]) => [Number(chain), number]))

const writePositions = (positions: SinkPositions): string =>
  JSON.stringify(Object.fromEntries([...positions].filter(([chain]) => chain >= 0)))
