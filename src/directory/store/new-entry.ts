import type { DatabaseTransaction } from '#database/sql-client.ts'
import { statement } from '#database/statement.ts'
import { insertValues, type ValueRow } from './attributes.ts'
import {
  addToPresentSize,
  type EntryValues,
  insertEntry,
  type NewEntry,
  nameColumns,
  resize,
  sizeSlot,
} from './entries.ts'

/**
 * Stores an entry and its values, and returns its key. With `counted`, also adds it to the size of its collection, for which
 * other transactions may wait: only if nothing else is locked afterwards, else call `resize` last. Throws the database's
 * CONFLICT when the name is taken.
 */
export async function createEntry(
  tx: DatabaseTransaction,
  entry: NewEntry,
  values: readonly ValueRow[],
  { counted }: { readonly counted: boolean },
): Promise<number> {
  const row = { ...entry, ...nameColumns(entry.name) }
  if (tx.dialect === 'postgres') {
    const parts = { values: JSON.stringify(values, bigintAsText), slot: sizeSlot(tx), counted: counted ? 1 : 0 }
    return (await insertAll.first(tx, { ...row, ...parts }))?.pk ?? 0
  }
  const pk = (await insert.first(tx, row))?.pk ?? 0
  await insertValues(tx, pk, entry.collection, values)
  if (counted) await resize(tx, entry.collection, 1)
  return pk
}

const insert = statement<EntryValues, { pk: number }>(`${insertEntry} returning pk`)

/** One statement for all tables saves PostgreSQL two round trips. */
const insertAll = statement<EntryValues & { values: string; slot: number; counted: number }, { pk: number }>(
  `with entry as (${insertEntry} returning pk, collection),
     value_rows as (
       insert into attributes (entry, collection, name_key, position, name, value, value_key, long_key, number)
       select entry.pk, entry.collection, "nameKey", position, name, value, "valueKey", "longKey", number
       from entry cross join json_to_recordset(cast(:values as json)) as given(
         "nameKey" text, position integer, name text, value text, "valueKey" text, "longKey" text, number bigint)),
     size_row as (
       insert into collection_sizes (collection, slot, size)
       select entry.collection, cast(:slot as integer), 1 from entry where cast(:counted as integer) = 1
       ${addToPresentSize})
   select pk from entry`,
)

/** JSON has no bigint; PostgreSQL reads the text as one. */
const bigintAsText = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)
