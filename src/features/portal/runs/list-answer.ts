import { Readable } from 'node:stream'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { byteOrderMark, csvLine } from '#kernel/text/csv.ts'
import { parseTime } from '#kernel/time.ts'
import { answer, badRequest } from '#sdk/api/json-answer.ts'
import { pauseWork } from '#sdk/api/long-request.ts'
import { readLimit, readQuery } from '#sdk/api/routes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import type { LookUpNames, NamedUser } from './person-names.ts'

const defaultLimit = 100
const maxLimit = 500
/** Rows of one file; a file that was cut says so in its last line. */
export const maxExported = 100_000
/** Files that one user, and all together, receive at a time. */
export const exportsAtOnce = { perUser: 2, total: 8 }

const exporting = new KeyedQueue({
  width: exportsAtOnce.perUser,
  maxPerKey: exportsAtOnce.perUser,
  maxPending: exportsAtOnce.total,
  refuse: (reason) =>
    new GatewayError('TOO_MANY_REQUESTS', reason, {
      publicText: 'Other files are being exported. Try again in a few seconds.',
      retryAfter: 5,
    }),
})

export interface ListPage<R> {
  readonly rows: readonly R[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string | undefined
  /** The users of the rows. */
  readonly users?: readonly NamedUser[]
}

export interface List<R> {
  /** The property of the answer that holds the rows. */
  readonly name: string
  /** The name of an exported file; that of the property if absent. */
  readonly file?: string
  /** One page; `after` is the `next` of the page before. */
  readonly read: (page: { readonly after?: string; readonly limit: number }) => Promise<ListPage<R>>
  /** Adds the display names of the users to a page, and to a file. */
  readonly names?: LookUpNames | undefined
  /** The columns of an exported file. */
  readonly columns: Readonly<Record<string, (row: R) => string | number | boolean | undefined>>
  /** Further columns with the display names of these logins, if names are looked up. A user without one has the login. */
  readonly nameColumns?: Readonly<Record<string, (row: R) => readonly (string | undefined)[]>>
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
  { request, subject }: Pick<Exchange, 'request' | 'subject'>,
  filters: readonly N[],
  list: (given: Readonly<Record<N, readonly string[]>>) => List<R>,
  many: readonly NoInfer<N>[] = [],
): Promise<GatewayResponse> {
  const given = readQuery<N | (typeof listParameters)[number]>(request.query, [...filters, ...listParameters], many)
  const described = list(given)
  const { name, file = name, read, names } = described
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
  const endTurn = await exporting.enter(subject.identity)
  try {
    const first = await read({ ...start, limit: maxLimit })
    const body = Readable.from(csv(first, described, request))
    body.once('close', endTurn)
    request.signal.addEventListener('abort', endTurn, { once: true })
    return {
      status: 200,
      headers: {
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="${file}.csv"`,
      },
      body,
    }
  } catch (error) {
    endTurn()
    throw error
  }
}

async function* csv<R>(
  first: ListPage<R>,
  { read, names, columns, nameColumns = {} }: List<R>,
  request: Pick<GatewayRequest, 'signal'>,
): AsyncGenerator<string> {
  const cells = Object.values(columns)
  const named = names === undefined ? {} : nameColumns
  yield byteOrderMark + csvLine([...Object.keys(columns), ...Object.keys(named)])
  let count = 0
  for (let page = first; ; page = await read({ after: page.next, limit: maxLimit })) {
    const known = new Map(Object.entries((await names?.(page.users ?? [])) ?? {}))
    const nameOf = (login = ''): string => known.get(login) ?? login
    const line = (row: R): string =>
      csvLine([
        ...cells.map((cell) => String(cell(row) ?? '')),
        ...Object.values(named).map((logins) => logins(row).map(nameOf).join(', ')),
      ])
    yield page.rows.map(line).join('')
    count += page.rows.length
    if (page.next === undefined) return
    if (count >= maxExported) break
    await pauseWork(request)
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
