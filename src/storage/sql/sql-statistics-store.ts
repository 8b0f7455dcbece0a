import { setImmediate as otherWork } from 'node:timers/promises'
import type { SqlClient, SqlQuery } from '#storage/client/sql-client.ts'
import { isStorable } from '#storage/client/text-keys.ts'
import { countCallers, countCalls, type SpanValues, statisticsStatements } from '#storage/sql/statistics-statements.ts'
import type { InPart, StatisticsCounts, StatisticsQuery, StatisticsStore } from '#storage/statistics-store.ts'

const mostNames = 100

export class SqlStatisticsStore implements StatisticsStore {
  readonly #client: SqlClient

  constructor(client: SqlClient) {
    this.#client = client
  }

  async count({ from, to, partMillis, journals, most }: StatisticsQuery): Promise<StatisticsCounts> {
    const { dialect } = this.#client
    const span: SpanValues = { from: from.getTime(), to: to.getTime(), width: partMillis }
    const names = { ...span, most: Math.max(1, Math.min(Math.trunc(most) || 1, mostNames)) }
    const counted = journals?.filter(isStorable)
    const { requests, workflows, opened, decided, medians, tokens } = statisticsStatements(dialect)
    const [whole] = await this.#read(medians({ ...span, width: Math.max(1, span.to - span.from) }))
    return {
      requests: await this.#inParts(span, requests),
      workflows: await this.#read(workflows(names)),
      opened: await this.#inParts(span, opened),
      decided: await this.#inParts(span, decided),
      decisionMillis: await this.#inParts(span, medians),
      ...(whole === undefined ? {} : { decisionMillisOfAll: whole.median }),
      tokens: await this.#inParts(span, tokens),
      calls: counted?.length === 0 ? [] : await this.#read(countCalls(dialect, span, counted)),
      callers: counted?.length === 0 ? [] : await this.#read(countCallers(dialect, names, counted)),
    }
  }

  /** SQLite counts in this very thread, so it is asked part by part: it has less to sort, and others get their turn. */
  async #inParts<R extends InPart>(span: SpanValues, statement: (values: SpanValues) => SqlQuery<R>): Promise<R[]> {
    if (this.#client.dialect === 'postgres') return await this.#read(statement(span))
    const found: R[] = []
    for (let part = 0, from = span.from; from < span.to; part++, from += span.width) {
      const to = Math.min(from + span.width, span.to)
      for (const row of await this.#read(statement({ ...span, from, to }))) found.push({ ...row, part })
    }
    return found
  }

  async #read<R>(query: SqlQuery<R>): Promise<R[]> {
    const rows = await this.#client.query(query)
    await otherWork()
    return rows
  }
}
