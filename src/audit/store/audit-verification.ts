import { isDeepStrictEqual } from 'node:util'
import type { AuditAnchor } from '#database/audit-seal.ts'
import { type AuditSeal, type Authenticity, authenticity, type ChainState } from '#database/audit-seal.ts'
import type { DatabaseReader } from '#database/sql-client.ts'
import { ListStatement, statement } from '#database/statement.ts'
import type { AuditLink } from '#kernel/audit-link.ts'
import { systemClock } from '#kernel/clock.ts'
import type { AuditEntry, AuditRecord } from '#sdk/audit/audit-entry.ts'
import {
  auditChains,
  type ChainedRecord,
  chainedRecord,
  chainState,
  countWithin,
  linkHash,
  readChains,
  recordSize,
} from './audit-chain.ts'
import { toEntries } from './audit-record.ts'
import type { AuditProblem, AuditReport } from './audit-report.ts'

const pageSize = 500
const pageBytes = 4_000_000
const maxProblems = 100

interface Chain extends ChainState {
  /** The number of the last record that exists, in the same snapshot. */
  readonly last: number | null
}

/** Reads only. Appending and retention may continue meanwhile. */
export async function verifyAudit(
  client: DatabaseReader,
  seal: AuditSeal | undefined,
  onPage: (checked: number) => Promise<void> = async () => {},
): Promise<AuditReport> {
  const problems: AuditProblem[] = []
  let checked = 0
  const all = await findChainsWithLast.all(client, {})
  const trusts = all.map((chain) => authenticity(seal, chain))
  const expectsSeal = seal !== undefined || trusts.some((trust) => trust !== 'unsealed')
  for (const [i, chain] of all.entries()) problems.push(...sealProblems(chain, trusts[i], expectsSeal))
  for (const chain of all) {
    const before = checked
    checked += await verifyChain(client, chain, problems, seal, (ofChain) => onPage(before + ofChain))
  }
  for (const chain of auditChains.filter((each) => !all.some((known) => known.chain === each))) {
    problems.push({ kind: 'removed', chain, number: 1 })
  }
  for (const { id } of await findOutsiders.all(client, {})) problems.push({ kind: 'inserted', id })
  const sealings = all.flatMap(({ sealedAt }, i) => (trusts[i] === 'sealed' && sealedAt !== null ? [sealedAt] : []))
  return {
    checked,
    authenticated: trusts.every((trust) => trust === 'sealed'),
    since: sealings.length === 0 ? undefined : new Date(Math.max(...sealings)),
    sealed: all.flatMap(({ chain, baseSeq, sealedSeq, sealedAt }) =>
      sealedSeq !== null && sealedAt !== null && sealedSeq > baseSeq
        ? [{ chain, number: sealedSeq, at: new Date(sealedAt) }]
        : [],
    ),
    pruned: all.flatMap(({ chain, baseSeq }) => (baseSeq > 0 ? [{ chain, number: baseSeq }] : [])),
    problems: problems.slice(0, maxProblems),
  }
}

function sealProblems(
  { chain, seq, brokenSeq, keyId }: Chain,
  trust: Authenticity | undefined,
  expectsSeal: boolean,
): AuditProblem[] {
  const broken: AuditProblem[] = brokenSeq === null ? [] : [{ kind: 'broken', chain, number: brokenSeq }]
  if (trust === 'forged') return [{ kind: 'forged', chain, number: seq }, ...broken]
  if (trust === 'no key') return [{ kind: 'no key', chain, key: keyId ?? '' }, ...broken]
  return trust === 'unsealed' && expectsSeal ? [{ kind: 'unsealed', chain, number: seq }, ...broken] : broken
}

async function verifyChain(
  client: DatabaseReader,
  chain: Chain,
  problems: AuditProblem[],
  seal: AuditSeal | undefined,
  onPage: (checked: number) => Promise<void>,
): Promise<number> {
  let place: Place = { chain, seal, number: chain.baseSeq, hash: chain.baseHash, seq: 0 }
  let checked = 0
  for (let after = Number.MIN_SAFE_INTEGER; problems.length < maxProblems; ) {
    const next = { chain: chain.chain, after }
    const limit = countWithin(pageBytes, await findPageSizes.all(client, next))
    const records = await findPage.all(client, { ...next, limit })
    for (const record of records) {
      if (record.chainSeq > chain.seq) break
      place = await check(client, place, record, problems)
      checked++
    }
    await onPage(checked)
    after = records.at(-1)?.chainSeq ?? after
    if (records.length === 0 || after >= chain.seq) break
  }
  if (problems.length >= maxProblems) return checked
  const { seq, hash, last } = chain
  if (place.number < seq && (await currentBase(client, place)).baseSeq < seq) {
    problems.push({ kind: 'removed', chain: chain.chain, number: place.number + 1 })
  } else if (place.number === seq && place.hash !== hash) {
    problems.push({ kind: 'changed', chain: chain.chain, number: seq })
  }
  if (last !== null && last > seq) problems.push({ kind: 'inserted', chain: chain.chain, number: last })
  return checked
}

/** After a checked record. */
interface Place {
  readonly chain: Chain
  readonly seal: AuditSeal | undefined
  readonly number: number
  readonly hash: string
  readonly seq: number
}

/** A wrong record is reported once: the next ones are checked as if it were right. */
async function check(
  client: DatabaseReader,
  place: Place,
  record: ChainedRecord & { readonly seq: number },
  problems: AuditProblem[],
): Promise<Place> {
  const { chain, chainSeq: number, id } = record
  const behind: Place = { ...place, number, hash: record.hash, seq: record.seq }
  if (number <= place.number) {
    problems.push({ kind: 'inserted', chain, number, id })
    return place
  }
  let before: string | undefined = place.hash
  if (number > place.number + 1) {
    const { baseSeq, baseHash } = await currentBase(client, place)
    if (baseSeq < number - 1) problems.push({ kind: 'removed', chain, number: Math.max(place.number, baseSeq) + 1 })
    before = baseSeq === number - 1 ? baseHash : undefined
  }
  const isWrong = before !== undefined && linkHash(before, chain, number, record) !== record.hash
  if (isWrong || record.seq <= place.seq) problems.push({ kind: 'changed', chain, number, id })
  return behind
}

/** Only retention may have moved it since the walk began, so it counts if its seal is valid. */
async function currentBase(client: DatabaseReader, { chain, seal }: Place): Promise<ChainState> {
  const found = (await readChains(client)).find((each) => each.chain === chain.chain)
  if (found === undefined) throw new Error(`the audit has no chain ${chain.chain}`)
  return authenticity(seal, found) === 'forged' ? chain : found
}

const findChainsWithLast = statement<object, Chain>(
  `select ${chainState}, (select max(audit.chain_seq) from audit where audit.chain = audit_chains.chain) as last
   from audit_chains order by chain`,
)
const findPageSizes = statement<{ chain: number; after: number }, { size: number }>(
  `select ${recordSize} from audit_rows where chain = :chain and chain_seq > :after
   order by chain_seq limit ${pageSize}`,
)
const findPage = statement<{ chain: number; after: number; limit: number }, ChainedRecord & { seq: number }>(
  `select seq, ${chainedRecord} from audit_rows where chain = :chain and chain_seq > :after
   order by chain_seq limit cast(:limit as bigint)`,
)
/** Records of an unknown chain. */
const findOutsiders = statement<object, { id: string }>(
  `select id from audit where chain is null or chain < 0 or chain > (select max(chain) from audit_chains)
   order by seq limit ${maxProblems}`,
)

/** The comparison with an anchor or export from outside the database. */
export interface AuditComparison {
  /** The number of compared heads or records. */
  readonly compared: number
  /** Records that were pruned since, which can't be compared. */
  readonly pruned: number
  readonly problems: readonly AuditProblem[]
}

/** The signed heads of chains with a valid seal. */
export async function anchorAudit(
  client: DatabaseReader,
  seal: AuditSeal | undefined,
): Promise<AuditAnchor | undefined> {
  if (seal === undefined) return undefined
  const heads = (await readChains(client))
    .filter((chain) => chain.seq > 0 && seal.check(chain) === 'sealed')
    .map(({ chain, seq, hash }) => ({ chain, number: seq, hash }))
  return heads.length === 0 ? undefined : seal.signAnchor({ time: systemClock().toISOString(), heads })
}

/** A record from outside: its position and hash, and what else is known of it. */
interface KeptRecord extends AuditLink {
  readonly rows?: AuditRecord['rows']
  /** A time at which it existed, in milliseconds. */
  readonly at?: number
}

export async function compareAnchors(
  client: DatabaseReader,
  seal: AuditSeal | undefined,
  anchors: readonly AuditAnchor[],
): Promise<AuditComparison> {
  const problems: AuditProblem[] = []
  const kept: KeptRecord[] = []
  for (const anchor of anchors) {
    const trust = seal?.checkAnchor(anchor) ?? 'no key'
    if (trust === 'no key') problems.push({ kind: 'no key', key: anchor.key })
    else if (trust === 'forged') problems.push({ kind: 'invalid' })
    else kept.push(...anchor.heads.map((head) => ({ ...head, at: Date.parse(anchor.time) })))
  }
  return await compare(client, kept, problems)
}

export async function compareRecords(
  client: DatabaseReader,
  records: readonly AuditRecord[],
): Promise<AuditComparison> {
  return await compare(
    client,
    records.map(({ link, rows }) => ({ ...link, rows })),
    [],
  )
}

async function compare(
  client: DatabaseReader,
  kept: readonly KeptRecord[],
  problems: AuditProblem[],
): Promise<AuditComparison> {
  const chains = new Map((await readChains(client)).map((chain) => [chain.chain, chain]))
  const found = new Map<string, ChainedRecord>()
  for (const [chain, each] of Map.groupBy(kept, (one) => one.chain)) {
    if (!chains.has(chain)) continue
    const numbers = [...new Set(each.map(({ number }) => number))]
    for (const record of await findRecords.all(client, { chain }, numbers)) {
      found.set(`${chain} ${record.chainSeq}`, record)
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
  { number, hash, rows, at }: KeptRecord,
  chain: ChainState | undefined,
  record: ChainedRecord | undefined,
): 'same' | 'pruned' | 'older' | 'differs' | 'resealed' {
  if (chain === undefined || number > chain.seq) return 'older'
  if (number === chain.baseSeq) return hash === chain.baseHash ? 'pruned' : 'differs'
  if (number < chain.baseSeq) return at !== undefined && (chain.sealedAt ?? 0) > at ? 'resealed' : 'pruned'
  if (record === undefined || record.hash !== hash) return 'differs'
  const present = new Map(toEntries(record).map((entry) => [entry.id, entry]))
  return (rows ?? []).every((row) => isDeepStrictEqual(plain(present.get(row.id)), plain(row))) ? 'same' : 'differs'
}

/** Parsed from JSON, whose times are texts. */
const plain = (entry: AuditEntry | undefined): unknown => JSON.parse(JSON.stringify(entry ?? null))

const findRecords = new ListStatement<{ chain: number }, number, ChainedRecord>(
  `select ${chainedRecord} from audit_rows where chain = :chain and chain_seq in (:list)`,
)
