import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import type { SqlClient, SqlTransaction } from '#storage/sql/sql-client.ts'

/** Records that one transaction removes, so that those who append do not wait long. */
const atOnce = 1000

const statements = perDialect((dialect) => ({
  chains: fixed<object, { chain: number }>(dialect, (db) =>
    db.selectFrom('audit_chains').select('chain').where('chain', '>=', 0).orderBy('chain'),
  ),
  lock: fixed<{ chain: number }, { base_seq: number }>(dialect, (db, at) =>
    db
      .selectFrom('audit_chains')
      .select('base_seq')
      .where('chain', '=', at('chain'))
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
  moveBase: fixed<{ chain: number; seq: number; hash: string }, unknown>(dialect, (db, at) =>
    db
      .updateTable('audit_chains')
      .set({ base_seq: at('seq'), base_hash: at('hash') })
      .where('chain', '=', at('chain')),
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

/** From the beginning of each chain up to the first record that is to stay. How many records went. */
export async function pruneAudit(client: SqlClient, before: Date): Promise<number> {
  const { chains, removeUnchained } = statements(client.dialect)
  const limit = before.getTime()
  const steps: ((tx: SqlTransaction) => Promise<number>)[] = [(tx) => tx.run(removeUnchained({ before: limit }))]
  for (const { chain } of await client.query(chains({}))) steps.push((tx) => pruneSome(tx, chain, limit))
  let pruned = 0
  for (const step of steps) {
    for (;;) {
      const some = await client.transaction(step)
      pruned += some
      if (some < atOnce) break
    }
  }
  return pruned
}

async function pruneSome(tx: SqlTransaction, chain: number, before: number): Promise<number> {
  const { lock, oldest, remove, moveBase } = statements(tx.dialect)
  const [base] = await tx.query(lock({ chain }))
  if (base === undefined) return 0
  const records = await tx.query(oldest({ chain, after: base.base_seq }))
  const stays = records.findIndex(({ time }) => time >= before)
  const last = records.at(stays < 0 ? -1 : stays - 1)
  if (last === undefined || stays === 0) return 0
  await tx.run(moveBase({ chain, seq: last.chain_seq, hash: last.hash }))
  return await tx.run(remove({ chain, until: last.chain_seq }))
}
