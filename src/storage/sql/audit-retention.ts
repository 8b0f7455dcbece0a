import { GatewayError } from '#kernel/errors.ts'
import type { AuditPruning, PrunedAudit } from '#storage/audit-store.ts'
import { appendToChain, auditEntry } from '#storage/sql/audit-chain.ts'
import { authenticity, type ChainState, chainColumns, missingKey } from '#storage/sql/audit-seal.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import { readPositions } from '#storage/sql/sql-audit-sink-store.ts'
import type { SqlClient, SqlTransaction } from '#storage/sql/sql-client.ts'

/** Records that one transaction removes, so that those who append do not wait long. */
const atOnce = 1000

const statements = perDialect((dialect) => ({
  chains: fixed<object, { chain: number }>(dialect, (db) =>
    db.selectFrom('audit_chains').select('chain').where('chain', '>=', 0).orderBy('chain'),
  ),
  lock: fixed<{ chain: number }, ChainState>(dialect, (db, at) =>
    db
      .selectFrom('audit_chains')
      .select(chainColumns)
      .where('chain', '=', at('chain'))
      // The order makes it another text than that of the head, whose rows come as lists.
      .orderBy('chain')
      .$if(dialect === 'postgres', (query) => query.forUpdate()),
  ),
  oldest: fixed<{ chain: number; after: number }, { chain_seq: number; time: number; hash: string }>(
    dialect,
    (db, at) =>
      db
        .selectFrom('audit')
        .select(['chain_seq', 'time', 'hash'])
        .where('chain', '=', at('chain'))
        .where('chain_seq', '>', at('after'))
        .orderBy('chain_seq')
        .limit(atOnce)
        .$narrowType<{ chain_seq: number; hash: string }>(),
  ),
  remove: fixed<{ chain: number; until: number }, unknown>(dialect, (db, at) =>
    db.deleteFrom('audit').where('chain', '=', at('chain')).where('chain_seq', '<=', at('until')),
  ),
  moveBase: fixed<ChainState, unknown>(dialect, (db, at) =>
    db
      .updateTable('audit_chains')
      .set({ base_seq: at('base_seq'), base_hash: at('base_hash'), key_id: at('key_id'), mac: at('mac') })
      .where('chain', '=', at('chain')),
  ),
  sinks: fixed<object, { name: string; positions: string }>(dialect, (db) =>
    db.selectFrom('audit_sinks').select(['name', 'positions']).where('configured', '=', 1).orderBy('name'),
  ),
  removeUnchained: fixed<{ before: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('audit')
      .where('seq', 'in', (query) =>
        query
          .selectFrom('audit')
          .select('seq')
          .where('chain', 'is', null)
          .where('time', '<', at('before'))
          .orderBy('seq')
          .limit(atOnce),
      ),
  ),
}))

/**
 * From the beginning of each chain up to the first record that is to stay: for its age, or for a sink that has not
 * received it. The first transaction that removes something writes the entry about it.
 */
export async function pruneAudit(
  client: SqlClient,
  before: Date,
  { by, unsent = false }: AuditPruning,
): Promise<PrunedAudit> {
  const { chains, sinks, removeUnchained } = statements(client.dialect)
  const limit = before.getTime()
  const received = unsent
    ? []
    : (await client.query(sinks({}))).map(({ name, positions }) => ({ name, at: readPositions(positions) }))
  const waiting = new Set<string>()
  const steps: ((tx: SqlTransaction) => Promise<number>)[] = [(tx) => tx.run(removeUnchained({ before: limit }))]
  for (const { chain } of await client.query(chains({}))) {
    steps.push((tx) => pruneSome(tx, chain, limit, received, waiting))
  }
  const entry = auditEntry({ action: 'delete', attribute: 'records', value: `before ${before.toISOString()}` }, by)
  let removed = 0
  for (const step of steps) {
    for (;;) {
      const isFirst = removed === 0
      const some = await client.transaction(async (tx) => {
        const count = await step(tx)
        if (isFirst && count > 0) await appendToChain(tx, [entry])
        return count
      })
      removed += some
      if (some < atOnce) break
    }
  }
  return { removed, waiting: [...waiting] }
}

interface Received {
  readonly name: string
  readonly at: ReadonlyMap<number, number>
}

async function pruneSome(
  tx: SqlTransaction,
  chain: number,
  before: number,
  received: readonly Received[],
  waiting: Set<string>,
): Promise<number> {
  const { lock, oldest, remove, moveBase } = statements(tx.dialect)
  const [base] = await tx.query(lock({ chain }))
  if (base === undefined) return 0
  const records = await tx.query(oldest({ chain, after: base.base_seq }))
  const old = records.findIndex(({ time }) => time >= before)
  const tooOld = old < 0 ? records : records.slice(0, old)
  const lacks = ({ at }: Received, number: number): boolean => (at.get(chain) ?? 0) < number
  for (const sink of received) {
    if (tooOld.some(({ chain_seq }) => lacks(sink, chain_seq))) waiting.add(sink.name)
  }
  const last = tooOld.findLast(({ chain_seq }) => !received.some((sink) => lacks(sink, chain_seq)))
  if (last === undefined) return 0
  const { seal } = tx
  const trust = authenticity(seal, base)
  if (trust === 'no key') throw missingKey(base.key_id)
  if (trust === 'forged') {
    throw new GatewayError('INTERNAL', `chain ${chain} of the audit is forged; run "gatehouse audit verify"`)
  }
  const moved = { ...base, base_seq: last.chain_seq, base_hash: last.hash }
  await tx.run(moveBase(trust === 'sealed' && seal !== undefined ? seal.sign(moved) : moved))
  return await tx.run(remove({ chain, until: last.chain_seq }))
}
