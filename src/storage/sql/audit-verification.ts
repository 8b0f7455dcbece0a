import type { AuditProblem, AuditReport } from '#storage/audit-store.ts'
import type { SqlReader } from '#storage/client/sql-client.ts'
import { auditChains, type ChainedRecord, isTokenChain, linkHash } from '#storage/sql/audit-chain.ts'
import { auditColumns } from '#storage/sql/audit-records.ts'
import {
  type AuditSeal,
  type Authenticity,
  authenticity,
  type ChainState,
  chainColumns,
} from '#storage/sql/audit-seal.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed } from '#storage/sql/queries.ts'

const pageSize = 500
const maxProblems = 100

interface Chain extends ChainState {
  /** The number of the last record that there is, as of the same moment. */
  readonly last: number | null
}

const statements = perDialect((dialect) => ({
  chains: fixed<object, Chain>(dialect, (db) =>
    db
      .selectFrom('audit_chains as c')
      .select(chainColumns.map((name) => `c.${name}` as const))
      .select((eb) =>
        eb
          .selectFrom('audit')
          .select(({ fn }) => fn.max('audit.chain_seq').as('last'))
          .whereRef('audit.chain', '=', 'c.chain')
          .as('last'),
      )
      .orderBy('c.chain'),
  ),
  page: fixed<{ chain: number; after: number }, ChainedRecord & { seq: number }>(dialect, (db, at) =>
    db
      .selectFrom('audit_rows')
      .select(['seq', 'chain', 'chain_seq', 'hash', ...auditColumns])
      .where('chain', '=', at('chain'))
      .where('chain_seq', '>', at('after'))
      .orderBy('chain_seq')
      .limit(pageSize)
      .$narrowType<{ chain: number; chain_seq: number; hash: string }>(),
  ),
  unchained: fixed<{ seq: number }, { count: number }>(dialect, (db, at) =>
    db
      .selectFrom('audit')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('chain', 'is', null)
      .where('seq', '<=', at('seq')),
  ),
  strangers: fixed<{ seq: number }, { id: string }>(dialect, (db, at) =>
    db
      .selectFrom('audit')
      .select('id')
      .where((eb) =>
        eb.or([
          eb.and([eb('chain', 'is', null), eb('seq', '>', at('seq'))]),
          eb('chain', '<', 0),
          eb(
            'chain',
            '>',
            eb.selectFrom('audit_chains').select(({ fn }) => fn.max('chain').as('chain')),
          ),
        ]),
      )
      .orderBy('seq')
      .limit(maxProblems),
  ),
}))

/** Reads only. Appending and retention may go on meanwhile. */
export async function verifyAudit(client: SqlReader, seal: AuditSeal | undefined): Promise<AuditReport> {
  const { chains, unchained, strangers } = statements(client.dialect)
  const problems: AuditProblem[] = []
  let checked = 0
  const all = await client.query(chains({}))
  const trusts = all.map((chain) => authenticity(seal, chain))
  const expectsSeal = seal !== undefined || trusts.some((trust) => trust !== 'unsealed')
  for (const [i, chain] of all.entries()) problems.push(...sealProblems(chain, trusts[i], expectsSeal))
  const seq = all.find(({ chain }) => chain < 0)?.seq ?? 0
  const real = all.filter(({ chain }) => chain >= 0)
  for (const chain of real) checked += await verifyChain(client, chain, problems, seal)
  for (const chain of auditChains.filter((each) => !all.some((known) => known.chain === each))) {
    problems.push({ kind: 'removed', chain, number: 1 })
  }
  for (const { id } of await client.query(strangers({ seq }))) problems.push({ kind: 'inserted', id })
  const [old] = await client.query(unchained({ seq }))
  return {
    checked,
    unchained: old?.count ?? 0,
    authenticated: trusts.every((trust) => trust === 'sealed'),
    ...sealedSince(all.filter((_, i) => trusts[i] === 'sealed')),
    sealed: real.flatMap(({ chain, base_seq, sealed_seq, sealed_at }) =>
      sealed_seq !== null && sealed_at !== null && sealed_seq > base_seq
        ? [{ chain, number: sealed_seq, at: new Date(sealed_at) }]
        : [],
    ),
    pruned: real.flatMap(({ chain, base_seq }) => (base_seq > 0 ? [{ chain, number: base_seq }] : [])),
    problems: problems.slice(0, maxProblems),
  }
}

function sealedSince(chains: readonly Chain[]): Pick<AuditReport, 'since' | 'tokensSince'> {
  const since = lastSealing(chains.filter(({ chain }) => !isTokenChain(chain)))
  const tokensSince = lastSealing(chains.filter(({ chain }) => isTokenChain(chain)))
  const isLater = since !== undefined && tokensSince !== undefined && tokensSince > since
  return { since, ...(isLater ? { tokensSince } : {}) }
}

function lastSealing(chains: readonly Chain[]): Date | undefined {
  const times = chains.flatMap(({ sealed_at }) => (sealed_at === null ? [] : [sealed_at]))
  return times.length === 0 ? undefined : new Date(Math.max(...times))
}

function sealProblems(
  { chain, seq, broken_seq, key_id }: Chain,
  trust: Authenticity | undefined,
  expectsSeal: boolean,
): AuditProblem[] {
  const broken: AuditProblem[] = broken_seq === null ? [] : [{ kind: 'broken', chain, number: broken_seq }]
  if (trust === 'forged') return [{ kind: 'forged', chain, number: seq }, ...broken]
  if (trust === 'no key') return [{ kind: 'no key', chain, key: key_id ?? '' }, ...broken]
  return trust === 'unsealed' && expectsSeal ? [{ kind: 'unsealed', chain, number: seq }, ...broken] : broken
}

async function verifyChain(
  client: SqlReader,
  chain: Chain,
  problems: AuditProblem[],
  seal: AuditSeal | undefined,
): Promise<number> {
  const { page } = statements(client.dialect)
  let place: Place = { chain, seal, number: chain.base_seq, hash: chain.base_hash, seq: 0 }
  let checked = 0
  for (let after = Number.MIN_SAFE_INTEGER; problems.length < maxProblems; ) {
    const records = await client.query(page({ chain: chain.chain, after }))
    for (const record of records) {
      if (record.chain_seq > chain.seq) break
      place = await check(client, place, record, problems)
      checked++
    }
    after = records.at(-1)?.chain_seq ?? after
    if (records.length < pageSize || after >= chain.seq) break
  }
  if (problems.length >= maxProblems) return checked
  const { seq, hash, last } = chain
  if (place.number < seq && (await currentBase(client, place)).base_seq < seq) {
    problems.push({ kind: 'removed', chain: chain.chain, number: place.number + 1 })
  } else if (place.number === seq && place.hash !== hash) {
    problems.push({ kind: 'changed', chain: chain.chain, number: seq })
  }
  if (last !== null && last > seq) problems.push({ kind: 'inserted', chain: chain.chain, number: last })
  return checked
}

/** Behind a record that was looked at. */
interface Place {
  readonly chain: Chain
  readonly seal: AuditSeal | undefined
  readonly number: number
  readonly hash: string
  readonly seq: number
}

/** A record that is wrong is reported once: what follows is checked as if it were right. */
async function check(
  client: SqlReader,
  place: Place,
  record: ChainedRecord & { readonly seq: number },
  problems: AuditProblem[],
): Promise<Place> {
  const { chain, chain_seq: number, id } = record
  const behind: Place = { ...place, number, hash: record.hash, seq: record.seq }
  if (number <= place.number) {
    problems.push({ kind: 'inserted', chain, number, id })
    return place
  }
  let before: string | undefined = place.hash
  if (number > place.number + 1) {
    const { base_seq, base_hash } = await currentBase(client, place)
    if (base_seq < number - 1) problems.push({ kind: 'removed', chain, number: Math.max(place.number, base_seq) + 1 })
    before = base_seq === number - 1 ? base_hash : undefined
  }
  const wrong = before !== undefined && linkHash(before, chain, number, record) !== record.hash
  if (wrong || record.seq <= place.seq) problems.push({ kind: 'changed', chain, number, id })
  return behind
}

/** Retention may have moved it since the walk began; nothing else may, so it counts where its seal is right. */
async function currentBase(client: SqlReader, { chain, seal }: Place): Promise<Chain> {
  const all = await client.query(statements(client.dialect).chains({}))
  const found = all.find((each) => each.chain === chain.chain)
  if (found === undefined) throw new Error(`the audit has no chain ${chain.chain}`)
  return authenticity(seal, found) === 'forged' ? chain : found
}
