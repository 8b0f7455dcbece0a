import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect, SqlTransaction } from '#storage/client/sql-client.ts'
import { foldKey, numberOf } from '#storage/client/text-keys.ts'
import type { ValueColumns } from '#storage/sql/entry-values.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts, fixedLists } from '#storage/sql/queries.ts'

/** Rows among which a collection's size is spread on a database with many writers, so that they do not queue for one. */
const sizeSlots = 16

interface NewEntry {
  readonly collection: number
  readonly id: string
  readonly name: string
  readonly key: string
  readonly number: bigint | null
  readonly held: string
  readonly now: number
}

/** An entry that nobody else changes until the transaction ends, with what it holds (see `held-values.ts`). */
export interface LockedEntry extends StoredEntry {
  readonly held: string
}

export interface StoredEntry {
  readonly pk: number
  readonly name: string
  readonly key: string
  readonly version: number
}

type AttributeRow = ValueColumns & { readonly entry: number; readonly collection: number }

const attributeColumns = [
  'entry',
  'name_key',
  'position',
  'collection',
  'name',
  'value',
  'value_key',
  'long_key',
  'number',
] as const

function insertEntry(dialect: SqlDialect, ifAbsent: boolean) {
  return fixed<NewEntry, { pk: number }>(dialect, (db, at) => {
    const insert = db.insertInto('entries').values({
      collection: at('collection'),
      id: at('id'),
      name: at('name'),
      key: at('key'),
      number: at('number'),
      held: at('held'),
      version: 1,
      created: at('now'),
      modified: at('now'),
    })
    return (ifAbsent ? insert.onConflict((on) => on.columns(['collection', 'key']).doNothing()) : insert).returning(
      'pk',
    )
  })
}

const statements = perDialect((dialect) => ({
  insert: insertEntry(dialect, false),
  insertIfAbsent: insertEntry(dialect, true),
  insertAttributes: fixedInserts<AttributeRow>(dialect, attributeColumns, (db, rows) =>
    db.insertInto('attributes').values(rows),
  ),
  lockByKey: fixed<{ collection: number; key: string }, LockedEntry>(dialect, (db, at) => {
    const query = db
      .selectFrom('entries')
      .select(['pk', 'name', 'key', 'version', 'held'])
      .where('collection', '=', at('collection'))
      .where('key', '=', at('key'))
    return dialect === 'postgres' ? query.forUpdate() : query
  }),
  findByKeys: fixedLists<{ collection: number }, string, StoredEntry>(dialect, (db, at, keys) =>
    db
      .selectFrom('entries')
      .select(['pk', 'name', 'key', 'version'])
      .where('collection', '=', at('collection'))
      .where('key', 'in', keys),
  ),
  lock: fixedLists<object, number, { pk: number }>(dialect, (db, _, keys) => {
    const query = db.selectFrom('entries').select('pk').where('pk', 'in', keys).orderBy('pk')
    return dialect === 'postgres' ? query.forUpdate() : query
  }),
  bump: fixedLists<{ now: number }, number, unknown>(dialect, (db, at, keys) =>
    db
      .updateTable('entries')
      .set((eb) => ({ version: eb('version', '+', 1), modified: at('now') }))
      .where('pk', 'in', keys),
  ),
  hold: fixed<{ pk: number; held: string }, unknown>(dialect, (db, at) =>
    db
      .updateTable('entries')
      .set({ held: at('held') })
      .where('pk', '=', at('pk')),
  ),
  rename: fixed<{ pk: number; name: string; key: string; number: bigint | null }, unknown>(dialect, (db, at) =>
    db
      .updateTable('entries')
      .set({ name: at('name'), key: at('key'), number: at('number') })
      .where('pk', '=', at('pk')),
  ),
  deleteAttribute: fixed<{ entry: number; name_key: string }, unknown>(dialect, (db, at) =>
    db.deleteFrom('attributes').where('entry', '=', at('entry')).where('name_key', '=', at('name_key')),
  ),
  deleteEntry: fixed<{ pk: number }, unknown>(dialect, (db, at) => db.deleteFrom('entries').where('pk', '=', at('pk'))),
  resize: fixed<{ collection: number; slot: number; by: number }, unknown>(dialect, (db, at) =>
    db
      .insertInto('collection_sizes')
      .values({ collection: at('collection'), slot: at('slot'), size: at('by') })
      .onConflict((on) =>
        on
          .columns(['collection', 'slot'])
          .doUpdateSet((eb) => ({ size: eb('collection_sizes.size', '+', eb.ref('excluded.size')) })),
      ),
  ),
}))

/** The name in the forms in which an entry holds it. */
const nameColumns = (name: string) => ({ name, key: foldKey(name), number: numberOf(name) })

/** Throws what the database throws when the name is taken. */
export async function insertEntryRow(
  tx: SqlTransaction,
  collection: number,
  id: string,
  name: string,
  held: string,
  now: number,
): Promise<number> {
  const [row] = await tx.query(statements(tx.dialect).insert({ collection, id, held, now, ...nameColumns(name) }))
  return row?.pk ?? 0
}

/** Undefined when the name is taken, by an entry that is committed by now or made in this transaction. */
export async function insertEntryIfAbsent(
  tx: SqlTransaction,
  collection: number,
  id: string,
  name: string,
  now: number,
): Promise<number | undefined> {
  const [row] = await tx.query(
    statements(tx.dialect).insertIfAbsent({ collection, id, now, held: '[]', ...nameColumns(name) }),
  )
  return row?.pk
}

export async function insertValues(
  tx: SqlTransaction,
  entry: number,
  collection: number,
  values: readonly ValueColumns[],
): Promise<void> {
  const rows = values.map((value) => ({ ...value, entry, collection }))
  for (const query of statements(tx.dialect).insertAttributes(rows)) await tx.run(query)
}

export async function deleteValues(tx: SqlTransaction, entry: number, attribute: string): Promise<void> {
  await tx.run(statements(tx.dialect).deleteAttribute({ entry, name_key: foldKey(attribute) }))
}

/** Puts down what the entry holds; its rows of values are for those who search. */
export async function holdValues(tx: SqlTransaction, entry: number, held: string): Promise<void> {
  await tx.run(statements(tx.dialect).hold({ pk: entry, held }))
}

/** The entry, which nobody else changes until the transaction ends. */
export async function lockEntry(
  tx: SqlTransaction,
  collection: number,
  name: string,
): Promise<LockedEntry | undefined> {
  const [entry] = await tx.query(statements(tx.dialect).lockByKey({ collection, key: foldKey(name) }))
  return entry
}

/** By folded names; those that do not exist are missing from the answer. */
export async function findEntries(
  tx: SqlTransaction,
  collection: number,
  keys: readonly string[],
): Promise<Map<string, StoredEntry>> {
  const found = new Map<string, StoredEntry>()
  for (const query of statements(tx.dialect).findByKeys({ collection }, keys)) {
    for (const entry of await tx.query(query)) found.set(entry.key, entry)
  }
  return found
}

/** Locks in one order, so that two who want the same entries do not wait for each other. */
export async function lockEntries(tx: SqlTransaction, entries: readonly number[]): Promise<void> {
  if (tx.dialect === 'sqlite') return
  const ordered = entries.toSorted((a, b) => a - b)
  for (const query of statements(tx.dialect).lock({}, ordered)) await tx.query(query)
}

/** Gives the entries a new version. */
export async function bumpEntries(tx: SqlTransaction, entries: readonly number[], now: number): Promise<void> {
  const ordered = entries.toSorted((a, b) => a - b)
  for (const query of statements(tx.dialect).bump({ now }, ordered)) await tx.run(query)
}

/** Throws VERSION_MISMATCH when a version is expected that the entry has not. */
export function checkVersion({ name, version }: StoredEntry, expected: string | undefined): void {
  if (expected === undefined || expected === String(version)) return
  throw new GatewayError('VERSION_MISMATCH', `${name} has version ${version}, not ${expected}`)
}

/** False when the entry has that name already, to the letter. Throws what the database throws when it is taken. */
export async function renameEntry(tx: SqlTransaction, entry: StoredEntry, name: string): Promise<boolean> {
  if (entry.name === name) return false
  await tx.run(statements(tx.dialect).rename({ pk: entry.pk, ...nameColumns(name) }))
  return true
}

/** Its values and memberships go with it. */
export async function deleteEntryRow(tx: SqlTransaction, entry: number): Promise<void> {
  await tx.run(statements(tx.dialect).deleteEntry({ pk: entry }))
}

/** Keeps a collection's size; to be called last, since the row may be wanted by others. */
export async function resize(tx: SqlTransaction, collection: number, by: number): Promise<void> {
  if (by === 0) return
  const slot = tx.dialect === 'sqlite' ? 0 : Math.floor(Math.random() * sizeSlots)
  await tx.run(statements(tx.dialect).resize({ collection, slot, by }))
}
