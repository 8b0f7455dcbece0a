import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { AuditAnchor, AuditEntry, AuditPart, AuditRecord } from '#domain/audit.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import {
  type AuditSealing,
  appendToChain,
  authenticateAudit,
  type ChainedRecord,
  chainedRecord,
  readChains,
  resealAudit,
} from '#storage/audit/audit-chain.ts'
import {
  type AuditContext,
  type AuditRecordRow,
  compactKey,
  contextOf,
  insertContexts,
  isSame,
  recordProperties,
  toEntries,
} from '#storage/audit/audit-record.ts'
import {
  type AuditPruning,
  auditSize,
  keptSince,
  type PrunedAudit,
  pruneAudit,
} from '#storage/audit/audit-retention.ts'
import type { AuditSeal } from '#storage/audit/audit-seal.ts'
import {
  type AuditComparison,
  type AuditReport,
  anchorAudit,
  compareAnchors,
  compareRecords,
  verifyAudit,
} from '#storage/audit/audit-verification.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { columns, dynamic } from '#storage/client/statement.ts'
import { isStorable, lookupKey } from '#storage/client/text-keys.ts'

const maxPage = 500
const rememberedContexts = 50_000
/** After this time they are written again if they are gone, as after a restored backup. */
const contextMillis = 3600_000

export interface AuditQuery {
  /** All given conditions must hold; logins are compared without regard to letter case. */
  readonly requestor?: string
  readonly subject?: string
  readonly workflowId?: string
  readonly target?: string
  readonly requestId?: string
  /** From this time on. */
  readonly from?: Date
  /** Before this time. */
  readonly until?: Date
  /** The `next` of the previous page. */
  readonly after?: string
  /** At most 500. */
  readonly limit: number
}

export interface AuditPage {
  /** Latest first. */
  readonly rows: readonly AuditEntry[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}

export interface AuditExport {
  /** Oldest first. */
  readonly records: readonly AuditRecord[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}

/** A position between entries: all entries of earlier records, and the entries of this one before `index`. */
interface Cursor {
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
        const isStored = ([, { id }]: readonly [string, AuditContext]): boolean =>
          unknown.has(id) || this.#contexts.get(id) !== undefined
        await appendToChain(tx, entries, new Map([...contexts].filter(isStored)))
      })
      const end = new Date(systemClock().getTime() + contextMillis)
      for (const [id, context] of unknown) this.#contexts.set(id, context, end)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'these audit entries exist', { cause: error })
    }
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

  /** Walks all chains, in bounded memory, while others append. */
  verify(): Promise<AuditReport> {
    return verifyAudit(this.#client, this.#seal)
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

  /** The time since which at most `most` records exist; undefined if there are no more. */
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
        if (rows.length === limit && last !== undefined) return { rows, next: `${last.seq}.${last.index}` }
        const entry = entries[index]
        if (entry !== undefined) rows.push(entry)
        last = { seq: record.seq, index }
      }
    }
    return { rows }
  }

  /**
   * Latest first; one more than the page's entries, since the cursor may be at the first entry of its record. Whole and
   * compact records have different keys, and each kind is read in order by its own index.
   */
  async #records(query: AuditQuery, cursor: Cursor | undefined, limit: number): Promise<ReadRecord[]> {
    const texts = [query.requestor, query.subject, query.workflowId, query.target, query.requestId]
    if (texts.some((text) => text !== undefined && !isStorable(text))) return []
    const [requestor, subject] = [query.requestor, query.subject].map((login) =>
      login === undefined ? undefined : lookupKey(login),
    )
    const { workflowId, target, requestId } = query
    const isKeyed = requestor !== undefined || subject !== undefined || workflowId !== undefined
    const keys = { requestor, subject, workflowId }
    const forms = isKeyed ? [wholeConditions(keys), compactConditions(keys)] : [[]]
    const shared = [
      ...(target === undefined ? [] : [sql`target = ${target}`]),
      ...(requestId === undefined ? [] : [sql`request_id = ${requestId}`]),
      ...timeConditions(query),
      ...(cursor === undefined ? [] : [sql`seq <= ${cursor.seq}`]),
    ]
    const pages = await Promise.all(
      forms.map((form) =>
        this.#select<ReadRecord>(
          sql`select seq, ${raw(wholeRecord)} from audit_rows ${where([...form, ...shared])}
              order by seq desc ${atMost(limit + 1)}`,
        ),
      ),
    )
    if (pages.length === 1) return pages.flat()
    return pages
      .flat()
      .sort((a, b) => b.seq - a.seq)
      .slice(0, limit + 1)
  }

  #select<R>(text: Sql): Promise<R[]> {
    return this.#client.query(dynamic<R>(this.#client.dialect, text))
  }
}

const wholeRecord = columns(recordProperties)

interface Keys {
  readonly requestor: string | undefined
  readonly subject: string | undefined
  readonly workflowId: string | undefined
}

/** The indexes have no empty keys; a statement uses them only if its text excludes empty keys. */
const wholeConditions = ({ requestor, subject, workflowId }: Keys): Sql[] => [
  sql`context is null`,
  ...(requestor === undefined ? [] : [sql`stored_requestor_key = ${requestor}`]),
  ...(requestor ? [sql`stored_requestor_key <> ''`] : []),
  ...(subject === undefined ? [] : [sql`stored_subject_key = ${subject}`]),
  ...(workflowId === undefined ? [] : [sql`stored_workflow_id = ${workflowId}`]),
  ...(workflowId ? [sql`stored_workflow_id <> ''`] : []),
]

/** Requestor and subject of a compact record are the same. */
const compactConditions = ({ requestor, subject, workflowId }: Keys): Sql[] => [
  sql`context is not null`,
  ...[requestor, subject].flatMap((key) =>
    key === undefined ? [] : [sql`stored_subject_key = ${compactKey(key)}`, sql`subject_key = ${key}`],
  ),
  ...(workflowId === undefined ? [] : [sql`id = ${workflowId}`]),
]

const timeConditions = ({ from, until }: Pick<AuditQuery, 'from' | 'until'>): Sql[] => [
  ...(from === undefined ? [] : [sql`time >= ${from.getTime()}`]),
  ...(until === undefined ? [] : [sql`time < ${until.getTime()}`]),
]

const where = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? empty : sql`where ${join(conditions, ' and ')}`

/** The cast keeps SQLite from preparing the statement again for each value. */
const atMost = (limit: number): Sql => sql`limit cast(${limit} as bigint)`

const pageSize = (limit: number): number => Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))

function readCursor(after: string): Cursor {
  const [, seq, index] = /^(\d{1,15})\.(\d{1,3})$/.exec(after) ?? []
  if (seq === undefined || index === undefined)
    throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${after}`)
  return { seq: Number(seq), index: Number(index) }
}
