import type { DatabaseReader, DatabaseTransaction, SqlQuery } from '#database/sql-client.ts'
import { inserted, ListStatement, statement } from '#database/statement.ts'
import { foldKey, numberOf } from '#database/text-keys.ts'
import type { EntryChange, GroupReadOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { MemberGroup } from '#identity/group.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'

/** A user with its groups, or a group with its members. */
export interface Entry {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly created: Date
  readonly modified: Date
  readonly attributes: Attributes
  /** Names of groups or of members, and their ids in the same order. */
  readonly related: readonly string[]
  readonly relatedIds: readonly string[]
  /** For a user: whether one of its groups is a member of another group. */
  readonly groupsAreNested?: boolean
  /** For a group read with its members: the first values of the requested attribute, in the same order. */
  readonly displays?: readonly (string | undefined)[]
  /** For a group read with its members: those that are groups. */
  readonly memberGroups?: readonly MemberGroup[]
  /** The keys of all members that are users, if they are too many to be read with the group. */
  readonly memberKeys?: readonly number[]
}

/** Which memberships are read with an entry: a user's groups, a group's members (all, or keys if many), or none. */
export type Related = 'groups' | 'members' | 'fewMembers' | 'none'

/**
 * The memberships are part of the entry's row: reading a few large cells is faster than many small ones. Rows are
 * lists, not objects, for the same reason.
 */
export type EntryRow = readonly [
  pk: number,
  id: string,
  name: string,
  version: number,
  created: number,
  modified: number,
  /** All attributes, as `storedAttributes` writes them. */
  attributes: string,
  /** JSON: a list of [name, id, extra]; null or an empty list when there are none. */
  related: string | null,
  /** The same for members that are groups; only with `members`. */
  memberGroups?: string | null,
  /** JSON: a list of keys; only with `fewMembers`, null if the members are in `related`. */
  memberKeys?: string | null,
]

/** `extra` is 1 or 0 for a group that is nested or not, and the display value for a member. */
type RelatedRow = readonly [name: string, id: string, extra: number | string | null]

const jsonRows: Readonly<Record<SqlDialect, (columns: string) => string>> = {
  sqlite: (list) => `json_group_array(json_array(${list}))`,
  postgres: (list) => `json_agg(json_build_array(${list}))::text`,
}

const jsonNumbers: Readonly<Record<SqlDialect, (column: string) => string>> = {
  sqlite: (column) => `json_group_array(${column})`,
  postgres: (column) => `json_agg(${column})::text`,
}

const isNested = 'case when exists (select 1 from nested_groups n where n.member_entry = r.pk) then 1 else 0 end'
export const firstValue = (nameKey: string): string =>
  `(select a.value from attributes a where a.entry = r.pk and a.name_key = ${nameKey} and a.position = 0)`

/** The members of a larger group are read in pages of this size. */
export const membersPerPage = 1000
const hasMany = `exists (select 1 from memberships m where m.group_entry = e.pk limit 1 offset ${membersPerPage})`

/** The cross joins make SQLite start with the memberships of the entry. */
const relatedColumns: Readonly<Record<Related, (on: SqlDialect) => string>> = {
  none: () => 'null',
  groups: (on) =>
    `(select ${jsonRows[on](`r.name, r.id, ${isNested}`)}
      from memberships m cross join entries r where m.user_entry = e.pk and r.pk = m.group_entry)`,
  members: (on) => `${memberRows(on)}, ${memberGroupRows(on)}`,
  fewMembers: (on) =>
    `case when ${hasMany} then null else ${memberRows(on)} end, ${memberGroupRows(on)},
     case when ${hasMany} then
       (select ${jsonNumbers[on]('m.user_entry')} from memberships m where m.group_entry = e.pk) end`,
}

const memberRows = (on: SqlDialect): string =>
  `(select ${jsonRows[on](`r.name, r.id, ${firstValue(':userDisplay')}`)}
    from memberships m cross join entries r where m.group_entry = e.pk and r.pk = m.user_entry)`
const memberGroupRows = (on: SqlDialect): string =>
  `(select ${jsonRows[on](`r.name, r.id, ${firstValue(':groupDisplay')}`)}
    from nested_groups n cross join entries r where n.group_entry = e.pk and r.pk = n.member_entry)`

/**
 * The part of a statement that follows `with page as (…)` and reads the entries of these keys. One statement is one
 * snapshot, so an entry is never read half before and half after a change. SQLite takes the tables of a cross join in
 * the order in which they are written: the few keys of the page first.
 */
export const selectPage = (dialect: SqlDialect, related: Related): string =>
  `select e.pk, e.id, e.name, e.version, e.created, e.modified, e.attributes, ${relatedColumns[related](dialect)}
   from page cross join entries as e where e.pk = page.pk`

export const readRows = (reader: DatabaseReader, query: SqlQuery<EntryRow>): Awaitable<EntryRow[]> =>
  reader.query({ ...query, asLists: true })

/** Rows come in any order; entries are in the order of creation. */
export const toEntries = (rows: readonly EntryRow[]): Entry[] =>
  (rows.length > 1 ? rows.toSorted((a, b) => a[0] - b[0]) : rows).map(toEntry)

export function toEntry(row: EntryRow): Entry {
  const [, id, name, version, created, modified, attributes, relatedText, memberGroups, keys] = row
  const related = readRelated(relatedText)
  return {
    id,
    name,
    version: String(version),
    created: new Date(created),
    modified: new Date(modified),
    attributes: readAttributes(attributes),
    related: related.map((one) => one[0]),
    relatedIds: related.map((one) => one[1]),
    ...(memberGroups === undefined
      ? { groupsAreNested: related.some((one) => one[2] === 1) }
      : { displays: related.map(displayOf), memberGroups: readRelated(memberGroups).map(toMemberGroup) }),
    ...(typeof keys === 'string' ? { memberKeys: JSON.parse(keys) as readonly number[] } : {}),
  }
}

function toMemberGroup(row: RelatedRow): MemberGroup {
  const display = displayOf(row)
  return { id: row[1], name: row[0], display }
}

const displayOf = ([, , extra]: RelatedRow): string | undefined => (typeof extra === 'string' ? extra : undefined)

/** Sorted by name. */
function readRelated(text: string | null): RelatedRow[] {
  const related: RelatedRow[] = text === null || text === '[]' ? [] : JSON.parse(text)
  return related.length > 1 ? related.sort((a, b) => (a[0] < b[0] ? -1 : 1)) : related
}

/** The form in which a row stores all attributes of its entry. No name appears twice, in any letter case. */
type StoredAttributes = readonly (readonly [name: string, values: readonly string[]])[]

export const storedAttributes = (attributes: Iterable<readonly [string, readonly string[]]>): string =>
  JSON.stringify(Array.from(attributes).filter(([, values]) => values.length > 0))

const readAttributes = (stored: string): Attributes =>
  stored === '[]' ? new Attributes() : Attributes.adopt(JSON.parse(stored) as StoredAttributes)

/** By folded name. */
export function attributesByKey(
  stored: string,
): Map<string, { readonly name: string; readonly values: readonly string[] }> {
  return new Map((JSON.parse(stored) as StoredAttributes).map(([name, values]) => [foldKey(name), { name, values }]))
}

/** `display` names the attributes whose first values are read with the members; without it, they have none. */
export function findEntry(
  reader: DatabaseReader,
  collection: number,
  by: 'id' | 'key',
  wanted: string,
  related: Related,
  display: GroupReadOptions['display'] = { users: '', groups: '' },
): Awaitable<Entry | undefined> {
  const displays = { userDisplay: foldKey(display.users), groupDisplay: foldKey(display.groups) }
  const query = find[related][by].query(reader.dialect, { wanted, collection, ...displays })
  return andThen(readRows(reader, query), ([row]) => row && toEntry(row))
}

const findBy = (column: 'id' | 'key', related: Related) =>
  statement<{ wanted: string; collection: number; userDisplay: string; groupDisplay: string }, EntryRow>(
    ({ name }) => `with page as (select pk from entries where ${column} = :wanted and collection = :collection)
      ${selectPage(name, related)}`,
  )
const find = {
  groups: { id: findBy('id', 'groups'), key: findBy('key', 'groups') },
  members: { id: findBy('id', 'members'), key: findBy('key', 'members') },
  fewMembers: { id: findBy('id', 'fewMembers'), key: findBy('key', 'fewMembers') },
  none: { id: findBy('id', 'none'), key: findBy('key', 'none') },
}

/** One change of a directory. */
export interface DirectoryWrite {
  /** The keys of the directory's two collections. */
  readonly users: number
  readonly groups: number
  readonly now: number
  /** Returns the changes that the work made. */
  readonly transaction: (
    work: (tx: DatabaseTransaction) => Promise<readonly EntryChange[]>,
  ) => Promise<readonly EntryChange[]>
}

/** An entry that no one else changes until the transaction ends. */
export interface LockedEntry extends StoredEntry {
  /** As `storedAttributes` writes them. */
  readonly attributes: string
}

export interface StoredEntry {
  readonly pk: number
  readonly name: string
  readonly key: string
  readonly version: number
}

export interface NewEntry {
  readonly collection: number
  readonly id: string
  readonly name: string
  /** As `storedAttributes` writes them. */
  readonly attributes: string
  readonly now: number
}

export const nameColumns = (name: string) => ({ name, key: foldKey(name), number: numberOf(name) })

/** Undefined if the name is taken by an entry that was committed before or created in this transaction. */
export async function insertEntryIfAbsent(tx: DatabaseTransaction, entry: NewEntry): Promise<number | undefined> {
  const row = await insertIfAbsent.first(tx, { ...entry, ...nameColumns(entry.name) })
  return row?.pk
}

export type EntryValues = NewEntry & ReturnType<typeof nameColumns>
export const insertEntry = `insert into entries (collection, id, name, key, number, attributes, version, created, modified)
  values (:collection, :id, :name, :key, :number, :attributes, 1, :now, :now)`
const insertIfAbsent = statement<EntryValues, { pk: number }>(
  `${insertEntry} on conflict (collection, key) do nothing returning pk`,
)

export const lockEntry = (
  tx: DatabaseTransaction,
  collection: number,
  name: string,
): Awaitable<LockedEntry | undefined> => lockByKey.first(tx, { collection, key: foldKey(name) })

const lockByKey = statement<{ collection: number; key: string }, LockedEntry>(
  (on) => `select pk, name, key, version, attributes from entries
    where collection = :collection and key = :key ${on.forUpdate}`,
)

/** By folded name; names that do not exist are missing from the result. */
export async function findEntries(
  tx: DatabaseTransaction,
  collection: number,
  keys: readonly string[],
): Promise<Map<string, StoredEntry>> {
  return new Map((await findByKeys.all(tx, { collection }, keys)).map((entry) => [entry.key, entry]))
}

const findByKeys = new ListStatement<{ collection: number }, string, StoredEntry>(
  `select pk, name, key, version from entries where collection = :collection and key in (:list)`,
)

/** Locks in one order for all, so that no two transactions wait for each other. */
export async function lockEntries(tx: DatabaseTransaction, entries: readonly number[]): Promise<void> {
  if (tx.dialect === 'sqlite') return
  await lockByPk.all(tx, {}, inOrder(entries))
}

const lockByPk = new ListStatement<object, number, { pk: number }>(
  (on) => `select pk from entries where pk in (:list) order by pk ${on.forUpdate}`,
)

/** The same for entries that only get a new version: others may add references to them meanwhile. */
export async function lockVersions(tx: DatabaseTransaction, entries: readonly number[]): Promise<void> {
  if (tx.dialect === 'sqlite') return
  await lockVersionByPk.all(tx, {}, inOrder(entries))
}

const lockVersionByPk = new ListStatement<object, number, { pk: number }>(
  (on) => `select pk from entries where pk in (:list) order by pk ${on.forNoKeyUpdate}`,
)

/** Gives the entries a new version. */
export async function bumpEntries(tx: DatabaseTransaction, entries: readonly number[], now: number): Promise<void> {
  await bump.run(tx, { now }, inOrder(entries))
}

const bump = new ListStatement<{ now: number }, number>(
  `update entries set version = version + 1, modified = :now where pk in (:list)`,
)

const inOrder = (entries: readonly number[]): number[] => entries.toSorted((a, b) => a - b)

/** Throws VERSION_MISMATCH unless the entry has the expected version. */
export function checkVersion({ name, version }: StoredEntry, expected: string | undefined): void {
  if (expected === undefined || expected === String(version)) return
  throw new GatewayError('VERSION_MISMATCH', `${name} has version ${version}, not ${expected}`)
}

/** False when the entry already has exactly that name. Throws the database's CONFLICT when the name is taken. */
export async function renameEntry(tx: DatabaseTransaction, entry: StoredEntry, name: string): Promise<boolean> {
  if (entry.name === name) return false
  await rename.run(tx, { pk: entry.pk, ...nameColumns(name) })
  return true
}

const rename = statement<{ pk: number } & ReturnType<typeof nameColumns>>(
  `update entries set name = :name, key = :key, number = :number where pk = :pk`,
)

/** Gives the entry other attributes, and with them a new version; the rows of the table `attributes` serve searches. */
export const replaceAttributes = statement<{ pk: number; attributes: string; now: number }>(
  `update entries set attributes = :attributes, version = version + 1, modified = :now where pk = :pk`,
)

/** The database deletes its values and memberships with it. */
export const deleteEntry = statement<{ pk: number }>(`delete from entries where pk = :pk`)

/** Rows over which the size of a collection is spread on PostgreSQL, so that its many writers do not wait for one. */
const sizeSlots = 64

/** Changes a collection's size; call it last, since other transactions wait for the row. */
export async function resize(tx: DatabaseTransaction, collection: number, by: number): Promise<void> {
  if (by === 0) return
  await addToSize.run(tx, { collection, slot: sizeSlot(tx), size: by })
}

export const sizeSlot = ({ dialect }: DatabaseTransaction): number =>
  dialect === 'sqlite' ? 0 : Math.floor(Math.random() * sizeSlots)

export const addToPresentSize =
  'on conflict (collection, slot) do update set size = collection_sizes.size + excluded.size'
const addToSize = statement<{ collection: number; slot: number; size: number }>(
  `insert into collection_sizes ${inserted(['collection', 'slot', 'size'])} ${addToPresentSize}`,
)

/** Explains the CONFLICT of a uniqueness constraint; returns other errors unchanged. */
export function explainConflict(error: unknown, publicText: string): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') return error
  return new GatewayError('CONFLICT', error.message, { cause: error, publicText, keyword: 'uniqueness' })
}
