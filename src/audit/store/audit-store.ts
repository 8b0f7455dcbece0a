import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { AuditAnchor } from '#database/audit-seal.ts'
import { type AuditSeal, authenticity, type ChainState, missingKey } from '#database/audit-seal.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import { columns, dynamic, statement } from '#database/statement.ts'
import { isStorable, lookupKey } from '#database/text-keys.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry, AuditPage, AuditPart, AuditQuery, AuditRecord } from '#sdk/audit/audit-entry.ts'
import {
  type AuditSealing,
  appendToChain,
  auditChains,
  auditEntry,
  authenticateAudit,
  type ChainedRecord,
  chainedRecord,
  isTokenChain,
  lockChain,
  readChains,
  resealAudit,
} from './audit-chain.ts'
import {
  type AuditContext,
  type AuditRecordRow,
  compactKey,
  contextOf,
  insertContexts,
  isSame,
  pruneContexts,
  recordProperties,
  toEntries,
} from './audit-record.ts'
import type { AuditReport } from './audit-report.ts'
import { findReceived, type SinkPositions } from './audit-sink-store.ts'
import { type AuditComparison, anchorAudit, compareAnchors, compareRecords, verifyAudit } from './audit-verification.ts'

const maxPage = 500
const rememberedContexts = 50_000
/** After this time they are written again if they are gone, as after a restored backup. */
const contextMillis = 3600_000

interface AuditExport {
  /** Oldest first. */
  readonly records: readonly AuditRecord[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}

/** A position between entries: all entries of earlier records, and the entries of this one before `index`. */
interface Cursor {
  readonly time: number
  readonly seq: number
  readonly index: number
}

type ReadRecord = AuditRecordRow & { readonly seq: number }

/**
 * Entries are never changed. Each record's hash covers the record and the hash of the previous one in its chain;
 * there are several chains, so that concurrent writers do not wait for each other. Every commit that moves the head
 * or base of a chain seals them with a key that is not in the database.
 */
export class AuditStore {
  readonly #client: SqlClient
  readonly #seal: AuditSeal | undefined
  /** Contexts that are known to be stored. */
  readonly #contexts = new BoundedCache<AuditContext>(rememberedContexts, systemClock)

  /** `seal` is the one that the client's transactions have. */
  constructor(client: SqlClient, seal?: AuditSeal) {
    this.#client = client
    this.#seal = seal
  }

  /** All entries or none. Throws CONFLICT if the same entries were written before. */
  async append(entries: readonly AuditEntry[]): Promise<void> {
    if (entries.length === 0) return
    try {
      const contexts = new Map<string, AuditContext>()
      const unknown = new Map<string, AuditContext>()
      for (const entry of entries) {
        const context = contextOf(entry)
        if (context === undefined) continue
        const known = this.#contexts.get(context.id) ?? unknown.get(context.id)
        if (known === undefined) unknown.set(context.id, context)
        if (known === undefined || isSame(context, known)) contexts.set(entry.id, context)
      }
      await this.#client.transaction(async (tx) => {
        if (unknown.size === 0) return appendToChain(tx, entries, contexts)
        const stored = await insertContexts(tx, [...unknown.values()])
        for (const id of unknown.keys()) if (!stored.has(id)) unknown.delete(id)
        for (const [entry, { id }] of contexts) {
          if (!unknown.has(id) && this.#contexts.get(id) === undefined) contexts.delete(entry)
        }
        await appendToChain(tx, entries, contexts)
      })
      const end = new Date(systemClock().getTime() + contextMillis)
      for (const [id, context] of unknown) this.#contexts.set(id, context, end)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'these audit entries exist', { cause: error })
    }
  }

  /** Writes an entry about the audit itself. */
  record(change: Parameters<typeof auditEntry>[0], by: string): Promise<void> {
    return this.append([auditEntry(change, by)])
  }

  /**
   * Appends as part of a transaction of another store, so that a change and its audit are one commit. False, and
   * nothing is written, if the transaction is not one of this database.
   */
  async appendWithin(transaction: object, entries: readonly AuditEntry[]): Promise<boolean> {
    if (!this.#client.owns(transaction)) return false
    if (entries.length > 0) await appendToChain(transaction, entries)
    return true
  }

  /**
   * Walks all chains, in bounded memory, while others append. Waits for `onPage` after each page, with the number of
   * records so far; if it rejects, the walk ends with its error.
   */
  verify(onPage?: (checked: number) => Promise<void>): Promise<AuditReport> {
    return verifyAudit(this.#client, this.#seal, onPage)
  }

  /**
   * A gateway calls it before it writes. Seals the chains of a database that has no seals yet, with an audit entry,
   * and seals again what an older key sealed. Throws INTERNAL without a key, or if a seal needs one that this
   * process does not have.
   */
  authenticate(): Promise<AuditSealing> {
    return authenticateAudit(this.#client, this.#seal)
  }

  /** Accepts all chains in their current state, even with forged seals, and writes an entry. Throws INTERNAL without a key. */
  seal(by: string): Promise<AuditSealing> {
    return resealAudit(this.#client, this.#seal, by)
  }

  /** The current heads of chains with a valid seal. Undefined without a key, or if no chain has records. */
  anchor(): Promise<AuditAnchor | undefined> {
    return anchorAudit(this.#client, this.#seal)
  }

  /** Compares the chains with anchors, at most 100 at a time. Trust the result only if `verify` has found no problem. */
  compareAnchors(anchors: readonly AuditAnchor[]): Promise<AuditComparison> {
    return compareAnchors(this.#client, this.#seal, anchors)
  }

  /**
   * Compares the chains with exported records, of which some entries may be missing, at most 500 at a time. Trust the
   * result only if `verify` has found no problem.
   */
  compareRecords(records: readonly AuditRecord[]): Promise<AuditComparison> {
    return compareRecords(this.#client, records)
  }

  /** The number of records. Costs little. */
  async size(): Promise<Readonly<Record<AuditPart, number>>> {
    return auditSize(await readChains(this.#client))
  }

  /** The time after which there are at most `most` records; undefined if there are no more in all. */
  keptSince(part: AuditPart, most: number): Promise<Date | undefined> {
    return keptSince(this.#client, part, most)
  }

  /** Removes what was written before then, from the start of each chain, and writes an entry. */
  prune(before: Date, options: AuditPruning): Promise<PrunedAudit> {
    return pruneAudit(this.#client, before, options)
  }

  /** At most 500 records. Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  async export(query: Pick<AuditQuery, 'from' | 'until' | 'after' | 'limit'>): Promise<AuditExport> {
    const limit = pageSize(query.limit)
    if (query.after !== undefined && !/^\d{1,15}$/.test(query.after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${query.after}`)
    }
    const conditions = timeConditions(query)
    if (query.after !== undefined) conditions.push(sql`seq > ${Number(query.after)}`)
    const found = await this.#select<ChainedRecord & ReadRecord>(
      sql`select seq, ${raw(chainedRecord)} from audit_rows ${where(conditions)} order by seq ${atMost(limit + 1)}`,
    )
    const records = found.slice(0, limit).map(({ chain, chainSeq, hash, ...record }) => ({
      link: { chain, number: chainSeq, hash },
      rows: toEntries(record),
    }))
    const last = found[limit - 1]
    return found.length > limit && last !== undefined ? { records, next: String(last.seq) } : { records }
  }

  /** Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  async list(query: AuditQuery): Promise<AuditPage> {
    const limit = pageSize(query.limit)
    const cursor = query.after === undefined ? undefined : readCursor(query.after)
    const rows: AuditEntry[] = []
    let last: Cursor | undefined
    for (const record of await this.#records(query, cursor, limit + 1)) {
      const before = record.seq === cursor?.seq ? cursor.index : Number.POSITIVE_INFINITY
      const entries = toEntries(record)
      for (let index = Math.min(entries.length, before) - 1; index >= 0; index--) {
        if (rows.length === limit && last !== undefined) return { rows, next: `${last.time}.${last.seq}.${last.index}` }
        const entry = entries[index]
        if (entry !== undefined) rows.push(entry)
        last = { time: record.time, seq: record.seq, index }
      }
    }
    return { rows }
  }

  /**
   * Latest first; one more than the page's entries, since the cursor may be at the first entry of its record. Whole and
   * compact records have different keys, and each kind is read in order by its own index: in the order of time for a
   * period or a target, and in the order of writing for everything, a requester, a user, a run or a request.
   */
  async #records(query: AuditQuery, cursor: Cursor | undefined, limit: number): Promise<ReadRecord[]> {
    const { workflowId, target, requestId } = query
    const texts = [query.requestor, query.subject, workflowId, target, requestId]
    if (texts.some((text) => text !== undefined && !isStorable(text))) return []
    const [requestor, subject] = [query.requestor, query.subject].map((login) =>
      login === undefined ? undefined : lookupKey(login),
    )
    const keys = { requestor, subject, workflowId, requestId }
    const shared = [...(target === undefined ? [] : [sql`target = ${target}`]), ...timeConditions(query)]
    const isKeyed = Object.values(keys).some((key) => key !== undefined)
    if (!isKeyed && shared.length > 0) {
      const conditions = [...shared, ...(cursor === undefined ? [] : notAfter(cursor))]
      return await this.#select<ReadRecord>(
        sql`select seq, ${raw(wholeRecord)} from audit_rows ${where(conditions)}
            order by time desc, seq desc ${atMost(limit + 1)}`,
      )
    }
    if (cursor !== undefined) shared.push(sql`seq <= ${cursor.seq}`)
    const forms = isKeyed ? [wholeConditions(keys), compactConditions(keys)] : [[]]
    const pages = await Promise.all(
      forms.map((form) =>
        this.#select<ReadRecord>(
          sql`select seq, ${raw(wholeRecord)} from audit_rows ${where([...form, ...shared])}
              order by seq desc ${atMost(limit + 1)}`,
        ),
      ),
    )
    return pages
      .flat()
      .sort((a, b) => b.seq - a.seq)
      .slice(0, limit + 1)
  }

  #select<R>(text: Sql): Awaitable<R[]> {
    return this.#client.query(dynamic<R>(this.#client.dialect, text))
  }
}

const wholeRecord = columns(recordProperties)

interface Keys {
  readonly requestor: string | undefined
  readonly subject: string | undefined
  readonly workflowId: string | undefined
  readonly requestId: string | undefined
}

/** The indexes have no empty keys; a statement uses them only if its text excludes empty keys. */
const wholeConditions = ({ requestor, subject, workflowId, requestId }: Keys): Sql[] => [
  sql`context is null`,
  ...(requestor === undefined ? [] : [sql`stored_requestor_key = ${requestor}`]),
  ...(requestor ? [sql`stored_requestor_key <> ''`] : []),
  ...(subject === undefined ? [] : [sql`stored_subject_key = ${subject}`]),
  ...(workflowId === undefined ? [] : [sql`stored_workflow_id = ${workflowId}`]),
  ...(workflowId ? [sql`stored_workflow_id <> ''`] : []),
  ...(requestId === undefined ? [] : [sql`stored_request_id = ${requestId}`]),
]

/** Requestor and subject of a compact record are the same, and so are its id, run and request. */
const compactConditions = ({ requestor, subject, workflowId, requestId }: Keys): Sql[] => [
  sql`context is not null`,
  ...[requestor, subject].flatMap((key) =>
    key === undefined ? [] : [sql`stored_subject_key = ${compactKey(key)}`, sql`subject_key = ${key}`],
  ),
  ...[workflowId, requestId].flatMap((id) => (id === undefined ? [] : [sql`id = ${id}`])),
]

const timeConditions = ({ from, until }: Pick<AuditQuery, 'from' | 'until'>): Sql[] => [
  ...(from === undefined ? [] : [sql`time >= ${from.getTime()}`]),
  ...(until === undefined ? [] : [sql`time < ${until.getTime()}`]),
]

const notAfter = ({ time, seq }: Cursor): Sql[] => [sql`time <= ${time}`, sql`(time < ${time} or seq <= ${seq})`]

const where = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? empty : sql`where ${join(conditions, ' and ')}`

/** The cast keeps SQLite from preparing the statement again for each value. */
const atMost = (limit: number): Sql => sql`limit cast(${limit} as bigint)`

const pageSize = (limit: number): number => Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))

function readCursor(after: string): Cursor {
  const [, time, seq, index] = /^(-?\d{1,16})\.(\d{1,15})\.(\d{1,3})$/.exec(after) ?? []
  if (time === undefined || seq === undefined || index === undefined) {
    throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${after}`)
  }
  return { time: Number(time), seq: Number(seq), index: Number(index) }
}

/** How many records one transaction removes, so that writers do not wait long. */
const atOnce = 1000

interface AuditPruning {
  /** Who prunes, for the audit entry. */
  readonly by: string
  /** Only these; all if absent. */
  readonly part?: AuditPart
  /** Also removes what a configured audit sink has not received. */
  readonly unsent?: boolean
}

interface PrunedAudit {
  /** Records that were removed. */
  readonly removed: number
  /** Audit sinks for which older records were kept, since they have not received them. */
  readonly waiting: readonly string[]
}

const partOf = (chain: number): AuditPart => (isTokenChain(chain) ? 'tokens' : 'others')

/** The number of records, from the numbers of the chains. */
function auditSize(chains: readonly ChainState[]): Record<AuditPart, number> {
  const size = { tokens: 0, others: 0 }
  for (const { chain, seq, baseSeq } of chains) size[partOf(chain)] += seq - baseSeq
  return size
}

async function keptSince(client: SqlClient, part: AuditPart, most: number): Promise<Date | undefined> {
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
async function pruneAudit(
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

async function pruneSome(
  tx: DatabaseTransaction,
  chain: number,
  before: number,
  part: AuditPart | undefined,
  received: ReadonlyMap<string, SinkPositions>,
  waiting: Set<string>,
): Promise<number> {
  const base = await lockChain.first(tx, { chain })
  if (base === undefined) return 0
  const records = await findOldest.all(tx, { chain, after: base.baseSeq })
  // An entry about a forged head may be in a chain of tokens; it is kept as long as the others.
  const kept = records.findIndex(({ time, kind }) => time >= before || (part === 'tokens' && kind !== 'token'))
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
  /** Of its first change. */
  readonly kind: string | null
}
const findOldest = statement<{ chain: number; after: number }, OldRecord>(
  (on) => `select chain_seq as "chainSeq", time, hash,
     ${on.name === 'sqlite' ? "changes ->> '$[0][1]'" : 'cast(changes as json) -> 0 ->> 1'} as kind
   from audit where chain = :chain and chain_seq > :after
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
