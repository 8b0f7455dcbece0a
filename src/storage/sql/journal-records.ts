import type { JsonValue } from '#kernel/json.ts'
import type { JournalRow, StoredJournalRow } from '#storage/journal-store.ts'

export const journalColumns = [
  'journal',
  'time',
  'request_id',
  'caller',
  'method',
  'path',
  'status',
  'keyword',
  'error',
  'millis',
  'details',
] as const

type Numbers = 'time' | 'status' | 'millis'
type Optional = 'keyword' | 'error'

export type JournalRecord = {
  readonly [K in (typeof journalColumns)[number]]: K extends Numbers
    ? number
    : K extends Optional
      ? string | null
      : string
}

interface Details {
  readonly workflows?: readonly string[]
  readonly operations?: JsonValue
}

/** A row is never refused for a character that a database cannot hold; the character is replaced. */
const storable = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')

export function toJournalRecord(journal: string, row: JournalRow): JournalRecord {
  const { workflows, operations } = row
  const details: Details = {
    ...(workflows.length === 0 ? {} : { workflows }),
    ...(operations === undefined ? {} : { operations }),
  }
  return {
    journal: storable(journal),
    time: row.time.getTime(),
    request_id: storable(row.requestId),
    caller: storable(row.caller),
    method: storable(row.method),
    path: storable(row.path),
    status: row.status,
    keyword: row.keyword === undefined ? null : storable(row.keyword),
    error: row.error === undefined ? null : storable(row.error),
    millis: Math.round(row.millis),
    details: JSON.stringify(details),
  }
}

export function toJournalRow(record: JournalRecord & { readonly seq: number }): StoredJournalRow {
  const { workflows = [], operations } = JSON.parse(record.details) as Details
  return {
    id: record.seq,
    journal: record.journal,
    time: new Date(record.time),
    requestId: record.request_id,
    caller: record.caller,
    method: record.method,
    path: record.path,
    status: record.status,
    millis: record.millis,
    workflows,
    ...(record.keyword === null ? {} : { keyword: record.keyword }),
    ...(record.error === null ? {} : { error: record.error }),
    ...(operations === undefined ? {} : { operations }),
  }
}
