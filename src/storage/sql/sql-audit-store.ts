import { GatewayError } from '#kernel/errors.ts'
import type {
  AuditAnchor,
  AuditComparison,
  AuditExport,
  AuditPage,
  AuditPruning,
  AuditQuery,
  AuditRecord,
  AuditReport,
  AuditRow,
  AuditSealing,
  AuditStore,
  PrunedAudit,
} from '#storage/audit-store.ts'
import { appendToChain } from '#storage/sql/audit-chain.ts'
import { anchorAudit, compareAnchors, compareRecords } from '#storage/sql/audit-comparison.ts'
import { auditColumns, type RecordColumns, toRows } from '#storage/sql/audit-records.ts'
import { pruneAudit } from '#storage/sql/audit-retention.ts'
import type { AuditSeal } from '#storage/sql/audit-seal.ts'
import { authenticateAudit, resealAudit } from '#storage/sql/audit-sealing.ts'
import { verifyAudit } from '#storage/sql/audit-verification.ts'
import { builderFor, dynamic } from '#storage/sql/queries.ts'
import type { SqlClient } from '#storage/sql/sql-client.ts'
import { isStorable, lookupKey } from '#storage/sql/text-keys.ts'

const maxPage = 500

/** A place between rows: everything of earlier records, and of this one the rows before `index`. */
interface Cursor {
  readonly seq: number
  readonly index: number
}

export class SqlAuditStore implements AuditStore {
  readonly #client: SqlClient
  readonly #seal: AuditSeal | undefined

  /** `seal` is the one that the client's transactions have. */
  constructor(client: SqlClient, seal?: AuditSeal) {
    this.#client = client
    this.#seal = seal
  }

  async append(rows: readonly AuditRow[]): Promise<void> {
    if (rows.length === 0) return
    try {
      await this.#client.transaction((tx) => appendToChain(tx, rows))
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
      throw new GatewayError('CONFLICT', 'these audit rows exist', { cause: error })
    }
  }

  async appendWithin(transaction: object, rows: readonly AuditRow[]): Promise<boolean> {
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

  prune(before: Date, options: AuditPruning): Promise<PrunedAudit> {
    return pruneAudit(this.#client, before, options)
  }

  async export(query: Pick<AuditQuery, 'from' | 'until' | 'after' | 'limit'>): Promise<AuditExport> {
    const limit = pageSize(query.limit)
    if (query.after !== undefined && !/^\d{1,15}$/.test(query.after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${query.after}`)
    }
    let select = builderFor(this.#client.dialect)
      .selectFrom('audit')
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
    const rows: AuditRow[] = []
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

  /** Latest first; one more than the page's rows, since the cursor may stand at the first row of its record. */
  async #records(query: AuditQuery, cursor: Cursor | undefined, limit: number) {
    const texts = [query.requestor, query.subject, query.workflowId, query.target, query.requestId]
    if (texts.some((text) => text !== undefined && !isStorable(text))) return []
    let select = builderFor(this.#client.dialect)
      .selectFrom('audit')
      .select(['seq', ...auditColumns])
    if (query.requestor !== undefined) select = select.where('requestor_key', '=', lookupKey(query.requestor))
    if (query.subject !== undefined) select = select.where('subject_key', '=', lookupKey(query.subject))
    if (query.workflowId !== undefined) select = select.where('workflow_id', '=', query.workflowId)
    if (query.target !== undefined) select = select.where('target', '=', query.target)
    if (query.requestId !== undefined) select = select.where('request_id', '=', query.requestId)
    if (query.from !== undefined) select = select.where('time', '>=', query.from.getTime())
    if (query.until !== undefined) select = select.where('time', '<', query.until.getTime())
    if (cursor !== undefined) select = select.where('seq', '<=', cursor.seq)
    return await this.#client.query(dynamic(select.orderBy('seq', 'desc').limit(limit + 1)))
  }
}

const pageSize = (limit: number): number => Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))

function readCursor(after: string): Cursor {
  const [, seq, index] = /^(\d{1,15})\.(\d{1,3})$/.exec(after) ?? []
  if (seq === undefined || index === undefined)
    throw new GatewayError('BAD_REQUEST', `not a page of the audit: ${after}`)
  return { seq: Number(seq), index: Number(index) }
}
