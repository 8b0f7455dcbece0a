import type { AuditAnchor, AuditEntry } from '#domain/audit.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type {
  AuditComparison,
  AuditExport,
  AuditPage,
  AuditPart,
  AuditPruning,
  AuditQuery,
  AuditRecord,
  AuditReport,
  AuditSealing,
  AuditStore,
  PrunedAudit,
} from '#storage/audit-store.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { isStorable, lookupKey } from '#storage/client/text-keys.ts'
import { appendToChain } from '#storage/sql/audit-chain.ts'
import { anchorAudit, compareAnchors, compareRecords } from '#storage/sql/audit-comparison.ts'
import { type AuditContext, compactKey, contextOf, insertContexts, isSame } from '#storage/sql/audit-contexts.ts'
import { auditColumns, type RecordColumns, toRows } from '#storage/sql/audit-records.ts'
import { auditSize, keptSince, pruneAudit } from '#storage/sql/audit-retention.ts'
import type { AuditSeal } from '#storage/sql/audit-seal.ts'
import { authenticateAudit, readChains, resealAudit } from '#storage/sql/audit-sealing.ts'
import { verifyAudit } from '#storage/sql/audit-verification.ts'
import { builderFor, dynamic } from '#storage/sql/queries.ts'

const maxPage = 500
const rememberedContexts = 50_000
/** Then they are written again where they are gone, as after a restored backup. */
const contextMillis = 3600_000

/** A place between rows: everything of earlier records, and of this one the rows before `index`. */
interface Cursor {
  readonly seq: number
  readonly index: number
}

export class SqlAuditStore implements AuditStore {
  readonly #client: SqlClient
  readonly #seal: AuditSeal | undefined
  /** Contexts that are surely stored. */
  readonly #contexts = new BoundedCache<AuditContext>(rememberedContexts, systemClock)

  /** `seal` is the one that the client's transactions have. */
  constructor(client: SqlClient, seal?: AuditSeal) {
    this.#client = client
    this.#seal = seal
  }

  async append(rows: readonly AuditEntry[]): Promise<void> {
    if (rows.length === 0) return
    try {
      const contexts = new Map(rows.flatMap((row) => [[row.id, contextOf(row)] as const]).filter(hasContext))
      const unknown = new Map<string, AuditContext>()
      for (const [row, context] of contexts) {
        const known = this.#contexts.get(context.id) ?? unknown.get(context.id)
        if (known === undefined) unknown.set(context.id, context)
        else if (!isSame(context, known)) contexts.delete(row)
      }
      await this.#client.transaction(async (tx) => {
        if (unknown.size === 0) return appendToChain(tx, rows, contexts)
        const stored = await insertContexts(tx, [...unknown.values()])
        for (const id of unknown.keys()) if (!stored.has(id)) unknown.delete(id)
        const isStored = ([, { id }]: readonly [string, AuditContext]): boolean =>
          unknown.has(id) || this.#contexts.get(id) !== undefined
        await appendToChain(tx, rows, new Map([...contexts].filter(isStored)))
      })
      const end = new Date(systemClock().getTime() + contextMillis)
      for (const [id, context] of unknown) this.#contexts.set(id, context, end)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'these audit rows exist', { cause: error })
    }
  }

  async appendWithin(transaction: object, rows: readonly AuditEntry[]): Promise<boolean> {
    if (!this.#client.owns(transaction)) return false
    if (rows.length > 0) await appendToChain(transaction, rows)
    return true
  }

  verify(): Promise<AuditReport> {
    return verifyAudit(this.#client, this.#seal)
  }

  authenticate(): Promise<AuditSealing> {
    return authenticateAudit(this.#client, this.#seal)
  }

  seal(by: string): Promise<AuditSealing> {
    return resealAudit(this.#client, this.#seal, by)
  }

  anchor(): Promise<AuditAnchor | undefined> {
    return anchorAudit(this.#client, this.#seal)
  }

  compareAnchors(anchors: readonly AuditAnchor[]): Promise<AuditComparison> {
    return compareAnchors(this.#client, this.#seal, anchors)
  }

  compareRecords(records: readonly AuditRecord[]): Promise<AuditComparison> {
    return compareRecords(this.#client, records)
  }

  async size(): Promise<Readonly<Record<AuditPart, number>>> {
    return auditSize(await readChains(this.#client))
  }

  keptSince(part: AuditPart, most: number): Promise<Date | undefined> {
    return keptSince(this.#client, part, most)
  }

  prune(before: Date, options: AuditPruning): Promise<PrunedAudit> {
    return pruneAudit(this.#client, before, options)
  }

  async export(query: Pick<AuditQuery, 'from' | 'until' | 'after' | 'limit'>): Promise<AuditExport> {
    const limit = pageSize(query.limit)
    if (query.after !== undefined && !/^\d{1,15}$/.test(query.after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${query.after}`)
    }
    let select = builderFor(this.#client.dialect)
      .selectFrom('audit_rows')
      .select(['seq', 'chain', 'chain_seq', 'hash', ...auditColumns])
    if (query.from !== undefined) select = select.where('time', '>=', query.from.getTime())
    if (query.until !== undefined) select = select.where('time', '<', query.until.getTime())
    if (query.after !== undefined) select = select.where('seq', '>', Number(query.after))
    const found = await this.#client.query(dynamic(select.orderBy('seq').limit(limit + 1)))
    const records = found.slice(0, limit).map(({ chain, chain_seq, hash, ...record }): AuditRecord => {
      const chained = chain !== null && chain_seq !== null && hash !== null
      return { ...(chained ? { link: { chain, number: chain_seq, hash } } : {}), rows: toRows(record) }
    })
    const last = found[limit - 1]
    return found.length > limit && last !== undefined ? { records, next: String(last.seq) } : { records }
  }

  async list(query: AuditQuery): Promise<AuditPage> {
    const limit = pageSize(query.limit)
    const cursor = query.after === undefined ? undefined : readCursor(query.after)
    const rows: AuditEntry[] = []
    let last: Cursor | undefined
    for (const record of await this.#records(query, cursor, limit + 1)) {
      const before = record.seq === cursor?.seq ? cursor.index : Number.POSITIVE_INFINITY
      const changes = toRows(record as RecordColumns)
      for (let index = Math.min(changes.length, before) - 1; index >= 0; index--) {
        if (rows.length === limit && last !== undefined) return { rows, next: `${last.seq}.${last.index}` }
        const row = changes[index]
        if (row !== undefined) rows.push(row)
        last = { seq: record.seq, index }
      }
    }
    return { rows }
  }

  /**
   * Latest first; one more than the page's rows, since the cursor may stand at the first row of its record. Whole and
   * compact rows have different keys, and each is read in its order by the index of its own.
   */
  async #records(query: AuditQuery, cursor: Cursor | undefined, limit: number) {
    const texts = [query.requestor, query.subject, query.workflowId, query.target, query.requestId]
    if (texts.some((text) => text !== undefined && !isStorable(text))) return []
    const isKeyed = query.requestor !== undefined || query.subject !== undefined || query.workflowId !== undefined
    const forms = isKeyed ? (['whole', 'compact'] as const) : (['any'] as const)
    const pages = await Promise.all(forms.map((form) => this.#recordsOf(form, query, cursor, limit + 1)))
    if (pages.length === 1) return pages.flat()
    return pages
      .flat()
      .sort((a, b) => b.seq - a.seq)
      .slice(0, limit + 1)
  }

  #recordsOf(form: 'whole' | 'compact' | 'any', query: AuditQuery, cursor: Cursor | undefined, limit: number) {
    let select = builderFor(this.#client.dialect)
      .selectFrom('audit_rows')
      .select(['seq', ...auditColumns])
    const [requestor, subject] = [query.requestor, query.subject].map((login) =>
      login === undefined ? undefined : lookupKey(login),
    )
    const { workflowId } = query
    if (form === 'whole') {
      select = select.where('context', 'is', null)
      // Said twice, since the indexes have no empty keys, and are not used where there may be one.
      if (requestor !== undefined) select = select.where('stored_requestor_key', '=', requestor)
      if (requestor) select = select.where('stored_requestor_key', '<>', '')
      if (subject !== undefined) select = select.where('stored_subject_key', '=', subject)
      if (workflowId !== undefined) select = select.where('stored_workflow_id', '=', workflowId)
      if (workflowId) select = select.where('stored_workflow_id', '<>', '')
    } else if (form === 'compact') {
      select = select.where('context', 'is not', null)
      for (const key of [requestor, subject]) {
        if (key === undefined) continue
        select = select.where('stored_subject_key', '=', compactKey(key)).where('subject_key', '=', key)
      }
      if (workflowId !== undefined) select = select.where('id', '=', workflowId)
    }
    if (query.target !== undefined) select = select.where('target', '=', query.target)
    if (query.requestId !== undefined) select = select.where('request_id', '=', query.requestId)
    if (query.from !== undefined) select = select.where('time', '>=', query.from.getTime())
    if (query.until !== undefined) select = select.where('time', '<', query.until.getTime())
    if (cursor !== undefined) select = select.where('seq', '<=', cursor.seq)
    return this.#client.query(dynamic(select.orderBy('seq', 'desc').limit(limit)))
  }
}

const hasContext = (pair: readonly [string, AuditContext | undefined]): pair is readonly [string, AuditContext] =>
  pair[1] !== undefined

const pageSize = (limit: number): number => Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))

function readCursor(after: string): Cursor {
  const [, seq, index] = /^(\d{1,15})\.(\d{1,3})$/.exec(after) ?? []
  if (seq === undefined || index === undefined)
    throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${after}`)
  return { seq: Number(seq), index: Number(index) }
}
