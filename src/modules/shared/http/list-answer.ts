import { Readable } from 'node:stream'
import { byteOrderMark, csvLine } from '#kernel/csv.ts'
import { parseTime } from '#kernel/time.ts'
import { answer, badRequest } from '#modules/shared/http/json-answer.ts'
import { readLimit, readQuery } from '#modules/shared/http/routes.ts'
import type { LookUpNames, NamedUser } from '#modules/shared/people/person-names.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

const defaultLimit = 100
const maxLimit = 500
/** Rows of one file; a file that was cut says so in its last line. */
export const maxExported = 100_000

export interface ListPage<R> {
  readonly rows: readonly R[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string | undefined
  /** The users of the rows. */
  readonly users?: readonly NamedUser[]
}

export interface List<R> {
  /** The property of the answer that holds the rows, and the name of an exported file. */
  readonly name: string
  /** One page; `after` is the `next` of the page before. */
  readonly read: (page: { readonly after?: string; readonly limit: number }) => Promise<ListPage<R>>
  /** Adds the display names of the users to a page. A file has logins only, for programs. */
  readonly names?: LookUpNames | undefined
  /** The columns of an exported file. */
  readonly columns: Readonly<Record<string, (row: R) => string | number | boolean | undefined>>
}

/** The parameters that every list has, as its operation describes them. */
export const listQuery = {
  after: 'The `next` of the page before',
  limit: 'How many at most',
  format: '"csv": a file of everything instead of a page',
}
export const listParameters = ['after', 'limit', 'format'] as const satisfies readonly (keyof typeof listQuery)[]

/**
 * A list for administrators: one page as JSON, or with `format=csv` a file of everything from `after` on. The query has
 * the `filters` of this list besides; those in `many` may repeat.
 */
export async function answerList<R, const N extends string>(
  { request }: Pick<Exchange, 'request'>,
  filters: readonly N[],
  list: (given: Readonly<Record<N, readonly string[]>>) => List<R>,
  many: readonly NoInfer<N>[] = [],
): Promise<GatewayResponse> {
  const given = readQuery<N | (typeof listParameters)[number]>(request.query, [...filters, ...listParameters], many)
  const { name, read, names, columns } = list(given)
  const [after] = given.after
  const [format = 'json'] = given.format
  const start = after === undefined ? {} : { after }
  if (format === 'json') {
    const page = await read({ ...start, limit: readLimit(given.limit, defaultLimit, maxLimit) })
    const { rows, next, users } = page
    const named = names === undefined || users === undefined ? {} : { names: await names(users) }
    return answer({ [name]: rows, ...(next === undefined ? {} : { next }), ...named })
  }
  if (format !== 'csv') throw badRequest('format must be json or csv.')
  const first = await read({ ...start, limit: maxLimit })
  return {
    status: 200,
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
    body: Readable.from(csv(first, read, columns)),
  }
}

async function* csv<R>(first: ListPage<R>, read: List<R>['read'], columns: List<R>['columns']): AsyncGenerator<string> {
  const cells = Object.values(columns)
  yield byteOrderMark + csvLine(Object.keys(columns))
  let count = 0
  for (let page = first; ; page = await read({ after: page.next, limit: maxLimit })) {
    yield page.rows.map((row) => csvLine(cells.map((cell) => String(cell(row) ?? '')))).join('')
    count += page.rows.length
    if (page.next === undefined) return
    if (count >= maxExported) break
  }
  yield csvLine([`The first ${count} rows. The others were left out.`])
}

/** A time in a query: an ISO 8601 date, or a span before now, such as `7d`. Undefined if it is absent or empty. */
export function readTime(name: string, [text]: readonly string[], now: Date): Date | undefined {
  if (text === undefined || text === '') return undefined
  const time = parseTime(text, now)
  if (time === undefined) throw badRequest(`${name} must be such as 15m, 1h or 7d, or an ISO 8601 date.`)
  return time
}
