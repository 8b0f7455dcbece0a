import { GatewayError } from '#kernel/errors.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { isStorable } from '#storage/client/text-keys.ts'
import type { JournalBatch, JournalPage, JournalQuery, JournalStore } from '#storage/journal-store.ts'
import { type JournalRecord, journalColumns, toJournalRecord, toJournalRow } from '#storage/sql/journal-records.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { builderFor, dynamic, fixed, fixedInserts } from '#storage/sql/queries.ts'

const maxPage = 500

const statements = perDialect((dialect) => ({
  insert: fixedInserts<JournalRecord>(dialect, journalColumns, (db, rows) => db.insertInto('journal').values(rows)),
  trim: fixed<{ journal: string; keep: number }, unknown>(dialect, (db, at) =>
    db
      .deleteFrom('journal')
      .where('journal', '=', at('journal'))
      .where('seq', '<=', (query) =>
        query
          .selectFrom('journal')
          .select('seq')
          .where('journal', '=', at('journal'))
          .orderBy('seq', 'desc')
          .limit(1)
          .offset(at('keep')),
      ),
  ),
}))

export class SqlJournalStore implements JournalStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  async append(batches: readonly JournalBatch[]): Promise<void> {
    const { insert, trim } = statements(this.#client.dialect)
    const queries = batches.flatMap(({ journal, keep, rows }) => [
      ...insert(rows.slice(Math.max(0, rows.length - keep)).map((row) => toJournalRecord(journal, row))),
      trim({ journal, keep }),
    ])
    if (queries.length === 0) return
    await this.#client.transaction(async (tx) => {
      for (const query of queries) await tx.run(query)
    })
  }

  async list(query: JournalQuery): Promise<JournalPage> {
    const limit = Math.max(1, Math.min(Math.trunc(query.limit) || 1, maxPage))
    if (query.after !== undefined && !/^\d{1,15}$/.test(query.after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of the journal: ${query.after}`)
    }
    const journals = query.journals?.filter(isStorable)
    if (journals?.length === 0) return { entries: [] }
    let select = builderFor(this.#client.dialect)
      .selectFrom('journal')
      .select(['seq', ...journalColumns])
    if (journals !== undefined) select = select.where('journal', 'in', journals)
    if (query.failed === true) select = select.where('status', '>=', 400)
    if (query.status !== undefined) select = select.where('status', '=', query.status)
    if (query.since !== undefined) select = select.where('time', '>=', query.since.getTime())
    if (query.after !== undefined) select = select.where('seq', '<', Number(query.after))
    const found = await this.#client.query(dynamic(select.orderBy('seq', 'desc').limit(limit + 1)))
    const entries = found.slice(0, limit).map((record) => toJournalRow(record))
    const last = entries.at(-1)
    return found.length > limit && last !== undefined ? { entries, next: String(last.id) } : { entries }
  }
}
