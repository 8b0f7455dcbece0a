import { isDeepStrictEqual } from 'node:util'
import type { AuditAnchor, AuditEntry } from '#domain/audit.ts'
import { systemClock } from '#kernel/clock.ts'
import type { AuditComparison, AuditProblem, AuditRecord } from '#storage/audit-store.ts'
import type { SqlReader } from '#storage/client/sql-client.ts'
import type { ChainedRecord } from '#storage/sql/audit-chain.ts'
import { auditColumns, toRows } from '#storage/sql/audit-records.ts'
import type { AuditSeal, ChainState } from '#storage/sql/audit-seal.ts'
import { readChains } from '#storage/sql/audit-sealing.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixedLists } from '#storage/sql/queries.ts'

const statements = perDialect((dialect) => ({
  records: fixedLists<{ chain: number }, number, ChainedRecord>(dialect, (db, at, numbers) =>
    db
      .selectFrom('audit_rows')
      .select(['chain', 'chain_seq', 'hash', ...auditColumns])
      .where('chain', '=', at('chain'))
      .where('chain_seq', 'in', numbers)
      .$narrowType<{ chain: number; chain_seq: number; hash: string }>(),
  ),
}))

/** The heads of chains whose seal is right, signed. */
export async function anchorAudit(client: SqlReader, seal: AuditSeal | undefined): Promise<AuditAnchor | undefined> {
  if (seal === undefined) return undefined
  const heads = (await readChains(client))
    .filter((chain) => chain.chain >= 0 && chain.seq > 0 && seal.check(chain) === 'sealed')
    .map(({ chain, seq, hash }) => ({ chain, number: seq, hash }))
  return heads.length === 0 ? undefined : seal.signAnchor({ time: systemClock().toISOString(), heads })
}

/** A record that someone kept: where it was, its hash, and what else is known of it. */
interface Kept {
  readonly chain: number
  readonly number: number
  readonly hash: string
  readonly rows?: AuditRecord['rows']
  /** When it was surely there, in milliseconds. */
  readonly at?: number
}

export async function compareAnchors(
  client: SqlReader,
  seal: AuditSeal | undefined,
  anchors: readonly AuditAnchor[],
): Promise<AuditComparison> {
  const problems: AuditProblem[] = []
  const kept: Kept[] = []
  for (const anchor of anchors) {
    const trust = seal?.checkAnchor(anchor) ?? 'no key'
    if (trust === 'no key') problems.push({ kind: 'no key', key: anchor.key })
    else if (trust === 'forged') problems.push({ kind: 'invalid' })
    else kept.push(...anchor.heads.map((head) => ({ ...head, at: Date.parse(anchor.time) })))
  }
  return await compare(client, kept, problems)
}

export async function compareRecords(client: SqlReader, records: readonly AuditRecord[]): Promise<AuditComparison> {
  const kept = records.flatMap(({ link, rows }) => (link === undefined ? [] : [{ ...link, rows }]))
  return await compare(client, kept, [])
}

async function compare(client: SqlReader, kept: readonly Kept[], problems: AuditProblem[]): Promise<AuditComparison> {
  const chains = new Map((await readChains(client)).map((chain) => [chain.chain, chain]))
  const found = new Map<string, ChainedRecord>()
  for (const [chain, each] of Map.groupBy(kept, (one) => one.chain)) {
    if (!chains.has(chain)) continue
    const numbers = [...new Set(each.map(({ number }) => number))]
    for (const query of statements(client.dialect).records({ chain }, numbers)) {
      for (const record of await client.query(query)) found.set(`${chain} ${record.chain_seq}`, record)
    }
  }
  let pruned = 0
  for (const one of kept) {
    const { chain, number } = one
    const outcome = judge(one, chains.get(chain), found.get(`${chain} ${number}`))
    if (outcome === 'pruned') pruned++
    else if (outcome !== 'same') problems.push({ kind: outcome, chain, number })
  }
  return { compared: kept.length - pruned, pruned, problems }
}

function judge(
  { number, hash, rows, at }: Kept,
  chain: ChainState | undefined,
  record: ChainedRecord | undefined,
): 'same' | 'pruned' | 'older' | 'differs' | 'resealed' {
  if (chain === undefined || number > chain.seq) return 'older'
  if (number === chain.base_seq) return hash === chain.base_hash ? 'pruned' : 'differs'
  if (number < chain.base_seq) return at !== undefined && (chain.sealed_at ?? 0) > at ? 'resealed' : 'pruned'
  if (record === undefined || record.hash !== hash) return 'differs'
  const present = new Map(toRows(record).map((row) => [row.id, row]))
  return (rows ?? []).every((row) => isDeepStrictEqual(plain(present.get(row.id)), plain(row))) ? 'same' : 'differs'
}

/** As it comes out of JSON, whose times are texts. */
const plain = (row: AuditEntry | undefined): unknown => JSON.parse(JSON.stringify(row ?? null))
