import type { DatabaseTransaction } from '#database/sql-client.ts'
import { RowInsert } from '#database/statement.ts'
import { insertRows, valueRows } from './attributes.ts'
import { nameColumns } from './entries.ts'

/** A user or a group that comes from another database, with its key there. */
export interface MovedEntry {
  readonly pk: number
  readonly collection: number
  readonly id: string
  readonly name: string
  readonly version: number
  readonly created: number
  readonly modified: number
  /** As `storedAttributes` writes them. */
  readonly attributes: string
}

/** Stores entries as they are, and what searches need. Throws an Error for attributes of another form. */
export function insertMoved(tx: DatabaseTransaction, entries: readonly MovedEntry[]): void {
  insertEntries.run(
    tx,
    entries.map((entry) => ({ ...entry, ...nameColumns(entry.name) })),
  )
  const rows = entries.flatMap(({ pk, collection, name, attributes }) =>
    valueRows(readAttributes(name, attributes)).map((row) => ({ ...row, entry: pk, collection })),
  )
  insertRows.run(tx, rows)
}

function readAttributes(entry: string, text: string): [name: string, values: string[]][] {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    read = undefined
  }
  const isText = (value: unknown): value is string => typeof value === 'string'
  const isPair = (pair: unknown): pair is [string, string[]] =>
    Array.isArray(pair) && pair.length === 2 && isText(pair[0]) && Array.isArray(pair[1]) && pair[1].every(isText)
  if (!Array.isArray(read) || !read.every(isPair)) {
    throw new Error(`the attributes of ${entry} are not a list of names and values`)
  }
  return read
}

const insertEntries = new RowInsert<MovedEntry & ReturnType<typeof nameColumns>>('entries', [
  'pk',
  'collection',
  'id',
  'name',
  'key',
  'number',
  'version',
  'created',
  'modified',
  'attributes',
])
