import type { AuditPart } from '#domain/audit.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import {
  appendToChain,
  auditChains,
  auditEntry,
  isTokenChain,
  lockChain,
  readChains,
} from '#storage/audit/audit-chain.ts'
import { pruneContexts } from '#storage/audit/audit-record.ts'
import { authenticity, type ChainState, missingKey } from '#storage/audit/audit-seal.ts'
import { findReceived, type SinkPositions } from '#storage/audit/audit-sink-store.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { statement } from '#storage/client/statement.ts'

/** How many records one transaction removes, so that writers do not wait long. */
const atOnce = 1000

export interface AuditPruning {
  /** Who prunes, for the audit entry. */
  readonly by: string
  /** Only these; all if absent. */
  readonly part?: AuditPart
  /** Also removes what a configured audit sink has not received. */
  readonly unsent?: boolean
}

export interface PrunedAudit {
  /** Records that were removed. */
  readonly removed: number
  /** Audit sinks for which older records were kept, since they have not received them. */
  readonly waiting: readonly string[]
}

const partOf = (chain: number): AuditPart => (isTokenChain(chain) ? 'tokens' : 'others')

/** The number of records, from the numbers of the chains. */
export function auditSize(chains: readonly ChainState[]): Record<AuditPart, number> {
  const size = { tokens: 0, others: 0 }
  for (const { chain, seq, baseSeq } of chains) size[partOf(chain)] += seq - baseSeq
  return size
}

export async function keptSince(client: SqlClient, part: AuditPart, most: number): Promise<Date | undefined> {
  const oldest = auditSize(await readChains(client))[part] - most
  if (oldest <= 0) return undefined
  const own = auditChains.filter((chain) => partOf(chain) === part)
  const [first = 0, last = 0] = [own.at(0), own.at(-1)]
  const found = await findTimeBehind.first(client, { first, last, oldest })
  // Without such a record the numbers of the chains are wrong, and nothing is removed because of them.
  return found && new Date(found.time)
}

/**
 * From the start of each chain up to the first record that is kept because of its age or a sink that has not
 * received it. The first transaction that removes something writes the entry about it.
 */
export async function pruneAudit(
  client: SqlClient,
  before: Date,
  { by, unsent = false, part }: AuditPruning,
): Promise<PrunedAudit> {
  const received = unsent ? new Map() : await findReceived(client)
  const waiting = new Set<string>()
  const what = part === undefined ? '' : part === 'tokens' ? ' (tokens)' : ' (all but tokens)'
  const value = `before ${before.toISOString()}${what}`
  const entry = auditEntry({ action: 'delete', attribute: 'records', value }, by)
  let removed = 0
  for (const { chain } of await readChains(client)) {
    if (part !== undefined && part !== partOf(chain)) continue
    for (;;) {
      const isFirst = removed === 0
      const some = await client.transaction(async (tx) => {
        const count = await pruneSome(tx, chain, before.getTime(), part, received, waiting)
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

/** An entry about a forged head may be in a chain of tokens; it is kept as long as the others. */
const isOfTokens = (changes: string): boolean => (JSON.parse(changes) as unknown[][])[0]?.[1] === 'token'

async function pruneSome(
  tx: SqlTransaction,
  chain: number,
  before: number,
  part: AuditPart | undefined,
  received: ReadonlyMap<string, SinkPositions>,
  waiting: Set<string>,
): Promise<number> {
  const base = await lockChain.first(tx, { chain })
  if (base === undefined) return 0
  const records = await findOldest.all(tx, { chain, after: base.baseSeq })
  const kept = records.findIndex(({ time, changes }) => time >= before || (part === 'tokens' && !isOfTokens(changes)))
  const tooOld = kept < 0 ? records : records.slice(0, kept)
  const lacks = (positions: SinkPositions, number: number): boolean => (positions.get(chain) ?? 0) < number
  for (const [name, positions] of received) {
    if (tooOld.some(({ chainSeq }) => lacks(positions, chainSeq))) waiting.add(name)
  }
  const all = [...received.values()]
  const last = tooOld.findLast(({ chainSeq }) => !all.some((positions) => lacks(positions, chainSeq)))
  if (last === undefined) return 0
  const { seal } = tx
  const trust = authenticity(seal, base)
  if (trust === 'no key') throw missingKey(base.keyId)
  if (trust === 'forged') {
    throw new GatewayError('INTERNAL', `chain ${chain} of the audit is forged; run "gatehouse audit verify"`)
  }
  const moved = { ...base, baseSeq: last.chainSeq, baseHash: last.hash }
  await moveBase.run(tx, trust === 'sealed' && seal !== undefined ? seal.sign(moved) : moved)
  return await deleteUntil.run(tx, { chain, until: last.chainSeq })
}

interface OldRecord {
  readonly chainSeq: number
  readonly time: number
  readonly hash: string
  readonly changes: string
}
const findOldest = statement<{ chain: number; after: number }, OldRecord>(
  `select chain_seq as "chainSeq", time, hash, changes from audit where chain = :chain and chain_seq > :after
   order by chain_seq limit ${atOnce}`,
)
const deleteUntil = statement<{ chain: number; until: number }>(
  `delete from audit where chain = :chain and chain_seq <= :until`,
)
const moveBase = statement<ChainState>(
  `update audit_chains set base_seq = :baseSeq, base_hash = :baseHash, key_id = :keyId, mac = :mac where chain = :chain`,
)
/** The time of the record after the oldest ones. */
const findTimeBehind = statement<{ first: number; last: number; oldest: number }, { time: number }>(
  `select time from audit where chain >= :first and chain <= :last order by seq limit 1 offset :oldest`,
)
