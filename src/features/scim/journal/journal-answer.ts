import { jsonBody } from '#kernel/json.ts'
import { parseTime } from '#kernel/time.ts'
import { badRequest } from '#sdk/api/json-answer.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { JournalQuery, StoredJournalEntry } from './journal-entry.ts'
import type { Journals } from './journals.ts'

/** What the filter that shows the journals uses beside what every filter may use. */
export interface JournalHost extends FilterHost {
  readonly journals: Pick<Journals, 'list'>
}

const defaultLimit = 100
const maxLimit = 500

/** The journals of these applications, or of all if none is named. */
export interface ShownJournals extends Pick<JournalHost, 'journals' | 'clock'> {
  readonly shown: readonly string[]
}

/** A page of the journals, by the request's query. */
export async function answerJournal(
  { shown, journals, clock }: ShownJournals,
  { request }: Exchange,
): Promise<GatewayResponse> {
  const { entries, next } = await journals.list(readJournalQuery(request.query, shown, clock()))
  const lines = entries.map(shownCall)
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  return { status: 200, headers, body: jsonBody({ entries: lines, ...(next === undefined ? {} : { next }) }) }
}

/** The filters of a journal, as its operations describe them. */
export const journalFilters = {
  gateway: 'An Application; may repeat',
  failed: '"true": only calls that failed',
  status: 'Only with this status',
  since: 'Such as 1h, or a date',
}

/** An entry as an operator sees it. */
export const shownCall = ({ journal, keyword: scimType, ...entry }: StoredJournalEntry) => ({
  gateway: journal,
  ...entry,
  scimType,
})

/** Rejects unknown parameters: a mistyped one would show more than the caller meant. */
export function readJournalQuery(query: URLSearchParams, shown: readonly string[], now: Date): JournalQuery {
  for (const name of query.keys())
    if (!readers.has(name)) throw badRequest(`There is no query parameter "${name.slice(0, 80)}".`)
  const asked = query.getAll('gateway')
  const journals = asked.length === 0 ? shown : asked.filter((name) => shown.length === 0 || shown.includes(name))
  let read: JournalQuery = {
    limit: defaultLimit,
    ...(asked.length === 0 && shown.length === 0 ? {} : { journals }),
  }
  for (const [name, reader] of readers) {
    const text = query.get(name)
    if (text !== null) read = { ...read, ...reader(text, now) }
  }
  return read
}

type Reader = (text: string, now: Date) => Partial<JournalQuery>

const readers: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ['gateway', () => ({})],
  ['failed', (text) => ({ failed: readFlag(text) })],
  ['status', (text) => ({ status: readNumber('status', text, 100, 599) })],
  ['since', (text, now) => ({ since: readSince(text, now) })],
  ['limit', (text) => ({ limit: readNumber('limit', text, 1, maxLimit) })],
  ['after', (text) => ({ after: text })],
])

function readFlag(text: string): boolean {
  if (text === 'true' || text === '') return true
  if (text === 'false') return false
  throw badRequest('failed must be true or false.')
}

function readNumber(name: string, text: string, min: number, max: number): number {
  const number = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw badRequest(`${name} must be a whole number from ${min} to ${max}.`)
}

function readSince(text: string, now: Date): Date {
  const since = parseTime(text, now)
  if (since === undefined) throw badRequest('since must be such as 90s, 15m, 1h or 7d, or an ISO 8601 date.')
  return since
}
