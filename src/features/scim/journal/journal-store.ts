import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { SqlClient } from '#database/sql-client.ts'
import { columns, dynamic, RowInsert, statement, withoutNulls } from '#database/statement.ts'
import { isStorable, optionalText, storable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JournalEntry, JournalPage, JournalQuery, StoredJournalEntry } from './journal-entry.ts'

const maxPage = 500

export interface JournalBatch {
  readonly journal: string
  /** How many entries stay; older ones of the journal are deleted. */
  readonly keep: number
  readonly entries: readonly JournalEntry[]
}

interface JournalRow {
  readonly journal: string
  readonly time: number
  readonly requestId: string
  readonly caller: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly keyword: string | null
  readonly error: string | null
  readonly millis: number
  readonly details: string
}

type StoredRow = JournalRow & { readonly seq: number }
type Details = Partial<Pick<JournalEntry, 'workflows' | 'operations' | 'dryRun'>>

const stored = [
  'journal',
  'time',
  'requestId',
  'caller',
  'method',
  'path',
  'status',
  'keyword',
  'error',
  'millis',
  'details',
] as const

export class JournalStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  /** Adds to journals and deletes what they no longer keep, in one transaction. */
  async append(batches: readonly JournalBatch[]): Promise<void> {
    if (batches.length === 0) return
    await this.#client.transaction(async (tx) => {
      for (const { journal, keep, entries } of batches) {
        const latest = entries.slice(Math.max(0, entries.length - keep))
        insert.run(
          tx,
          latest.map((entry) => toRow(journal, entry)),
        )
        await trim.run(tx, { journal, keep })
      }
    })
  }

  /** Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
  async list(query: JournalQuery): Promise<JournalPage> {
    const limit = Math.max(1, Math.min(Math.trunc(query.limit) || 1, maxPage))
    if (query.after !== undefined && !/^\d{1,15}$/.test(query.after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of the journal: ${query.after}`)
    }
    const journals = query.journals?.filter(isStorable)
    if (journals?.length === 0) return { entries: [] }
    const conditions = [...searchConditions({ ...query, ...(journals === undefined ? {} : { journals }) })]
    const select = sql`select seq, ${raw(columns(stored))} from journal
      ${conditions.length === 0 ? empty : sql`where ${join(conditions, ' and ')}`} order by seq desc limit ${limit + 1}`
    const found = await this.#client.query(dynamic<StoredRow>(this.#client.dialect, select))
    const entries = found.slice(0, limit).map(fromRow)
    const last = entries.at(-1)
    return found.length > limit && last !== undefined ? { entries, next: String(last.id) } : { entries }
  }
}

function* searchConditions({ journals, failed, status, since, after }: JournalQuery): Generator<Sql> {
  if (journals !== undefined) yield sql`journal in (${join([...journals])})`
  if (failed === true) yield sql`status >= 400`
  if (status !== undefined) yield sql`status = ${status}`
  if (since !== undefined) yield sql`time >= ${since.getTime()}`
  if (after !== undefined) yield sql`seq < ${Number(after)}`
}

function toRow(journal: string, entry: JournalEntry): JournalRow {
  const { workflows, operations, dryRun } = entry
  const details: Details = {
    ...(workflows.length === 0 ? {} : { workflows }),
    operations,
    dryRun,
  }
  return {
    journal: storable(journal),
    time: entry.time.getTime(),
    requestId: storable(entry.requestId),
    caller: storable(entry.caller),
    method: storable(entry.method),
    path: storable(entry.path),
    status: entry.status,
    keyword: optionalText(entry.keyword),
    error: optionalText(entry.error),
    millis: Math.round(entry.millis),
    details: JSON.stringify(details),
  }
}

const fromRow = ({ seq, details, ...same }: StoredRow): StoredJournalEntry => ({
  id: seq,
  ...withoutNulls(same),
  time: new Date(same.time),
  workflows: [],
  ...(JSON.parse(details) as Details),
})

const insert = new RowInsert<JournalRow>('journal', stored)
const trim = statement<{ journal: string; keep: number }>(
  `delete from journal where journal = :journal and seq <=
     (select seq from journal where journal = :journal order by seq desc limit 1 offset :keep)`,
)
