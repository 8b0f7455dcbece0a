import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditPart, AuditPruning, PrunedAudit } from '#storage/audit-store.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { appendToChain, auditChains, auditEntry, isTokenChain } from '#storage/sql/audit-chain.ts'
import { pruneContexts } from '#storage/sql/audit-contexts.ts'
import { authenticity, type ChainState, chainColumns, missingKey } from '#storage/sql/audit-seal.ts'
import { readChains } from '#storage/sql/audit-sealing.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'
import { readPositions } from '#storage/sql/sql-audit-sink-store.ts'

/** Records that one transaction removes, so that those who append do not wait long. */
const atOnce = 1000

interface OldRecord {
  readonly chain_seq: number
  readonly time: number
  readonly hash: string
  readonly changes: string
}

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
  oldest: fixed<{ chain: number; after: number }, OldRecord>(dialect, (db, at) =>
    db
      .selectFrom('audit')
      .select(['chain_seq', 'time', 'hash', 'changes'])
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
  /** The time of the record behind the oldest ones. */
  behind: fixed<{ first: number; last: number; oldest: number }, { time: number }>(dialect, (db, at) =>
    db
      .selectFrom('audit')
      .select('time')
      .where('chain', '>=', at('first'))
      .where('chain', '<=', at('last'))
      .orderBy('seq')
      .limit(1)
      .offset(at('oldest')),
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

const partOf = (chain: number): AuditPart => (isTokenChain(chain) ? 'tokens' : 'others')

/** Records that are there, from the chains' own numbers. */
export function auditSize(chains: readonly ChainState[]): Record<AuditPart, number> {
  const size = { tokens: 0, others: 0 }
  for (const { chain, seq, base_seq } of chains) if (chain >= 0) size[partOf(chain)] += seq - base_seq
  return size
}

export async function keptSince(client: SqlClient, part: AuditPart, most: number): Promise<Date | undefined> {
  const oldest = auditSize(await readChains(client))[part] - most
  if (oldest <= 0) return undefined
  const own = auditChains.filter((chain) => partOf(chain) === part)
  const [first = 0, last = 0] = [own.at(0), own.at(-1)]
  const [behind] = await client.query(statements(client.dialect).behind({ first, last, oldest }))
  // Without such a record the numbers of the chains are wrong, and nothing is removed because of them.
  return behind && new Date(behind.time)
}

/**
 * From the beginning of each chain up to the first record that is to stay: for its age, or for a sink that has not
 * received it. The first transaction that removes something writes the entry about it.
 */
export async function pruneAudit(
  client: SqlClient,
  before: Date,
  { by, unsent = false, part }: AuditPruning,
): Promise<PrunedAudit> {
  const { chains, sinks, removeUnchained } = statements(client.dialect)
  const limit = before.getTime()
  const received = unsent
    ? []
    : (await client.query(sinks({}))).map(({ name, positions }) => ({ name, at: readPositions(positions) }))
  const waiting = new Set<string>()
  const steps: ((tx: SqlTransaction) => Promise<number>)[] =
    part === 'tokens' ? [] : [(tx) => tx.run(removeUnchained({ before: limit }))]
  for (const { chain } of await client.query(chains({}))) {
    if (part !== undefined && part !== partOf(chain)) continue
    steps.push((tx) => pruneSome(tx, chain, limit, part, received, waiting))
  }
  const what = part === undefined ? '' : part === 'tokens' ? ' (tokens)' : ' (all but tokens)'
  const value = `before ${before.toISOString()}${what}`
  const entry = auditEntry({ action: 'delete', attribute: 'records', value }, by)
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
  if (removed > 0) await client.transaction((tx) => pruneContexts(tx, systemClock()))
  return { removed, waiting: [...waiting] }
}

/** A gateway of an earlier version may have written something else to their chains, which has its own retention. */
const isOfTokens = (changes: string): boolean => (JSON.parse(changes) as unknown[][])[0]?.[1] === 'token'

interface Received {
  readonly name: string
  readonly at: ReadonlyMap<number, number>
}

async function pruneSome(
  tx: SqlTransaction,
  chain: number,
  before: number,
  part: AuditPart | undefined,
  received: readonly Received[],
  waiting: Set<string>,
): Promise<number> {
  const { lock, oldest, remove, moveBase } = statements(tx.dialect)
  const [base] = await tx.query(lock({ chain }))
  if (base === undefined) return 0
  const records = await tx.query(oldest({ chain, after: base.base_seq }))
  const old = records.findIndex(({ time, changes }) => time >= before || (part === 'tokens' && !isOfTokens(changes)))
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
