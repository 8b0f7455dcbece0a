import sql, { join, type Sql } from 'sql-template-tag'
import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlReader, SqlRow, SqlTransaction } from '#protocols/sql/sql-database.ts'
import { identifier } from '#protocols/sql/sql-database.ts'
import {
  bound,
  type Column,
  canonicalTimestamp,
  columnOf,
  decode,
  equals,
  equalTo,
  insertInto,
  jsonList,
  readJsonList,
  textIn,
  valueRows,
} from './column.ts'
import { type Layout, makesOwnKey } from './layout.ts'
import { type EntryTable, type EntryTimes, type GroupTables, tableId } from './tables.ts'

/** The columns that `readEntry` reads, of the table with this alias. */
function entryColumns(alias: string, { name, id, version, times, columns }: EntryTable<Column>): Sql[] {
  const text = (column: Column, as: string): Sql => sql`${textIn(alias, column)} as ${identifier(as)}`
  return [
    text(name, 'name'),
    text(id, 'id'),
    ...(version === undefined ? [] : [text(version, 'version')]),
    ...timeTexts(alias, times),
    ...Array.from(columns.values(), (column, i) => text(column, `column${i}`)),
  ]
}

/** What users and groups have in common. */
function readEntry(row: SqlRow, { name, id, version, columns }: EntryTable<Column>) {
  const attributes = new Attributes()
  for (const [i, [attribute, column]] of [...columns].entries()) {
    const value = row[`column${i}`]
    if (typeof value === 'string') attributes.set(attribute, [decode(column, value)])
  }
  return {
    name: decode(name, String(row['name'] ?? '')),
    id: decode(id, String(row['id'] ?? '')),
    attributes,
    ...(version === undefined ? {} : { version: String(row['version'] ?? '') }),
    ...timesOf(row),
  }
}

/** Reads whole users, each as one row of one statement. */
export class UserRows {
  readonly #layout: Layout

  constructor(layout: Layout) {
    this.#layout = layout
  }

  /** The columns of the table with the alias `u`. */
  get columns(): Sql {
    const { users } = this.#layout
    const lists = Array.from(users.values.values(), (values, i) => {
      const { value, position } = values
      const from = sql`from ${valueRows('v', values, columnOf('u', users.id))}`
      const order = position === undefined ? undefined : columnOf('v', position)
      return sql`${jsonList('v', value, from, order)} as ${identifier(`values${i}`)}`
    })
    return join([...entryColumns('u', users), ...lists, ...this.#groupLists()])
  }

  #groupLists(): Sql[] {
    const { groups } = this.#layout
    if (groups === undefined) return []
    const { members, own, userRef } = groups
    const ofUser = sql`${columnOf('m', members.user)} = ${columnOf('u', userRef)}`
    if (own === undefined) {
      const from = sql`from ${tableId(members.table)} as m where ${ofUser}`
      return [sql`${jsonList('m', members.group, from)} as groups`]
    }
    const from = sql`from ${tableId(members.table)} as m join ${tableId(own.table)} as g on ${columnOf('g', own.ref)} = ${columnOf('m', members.group)} where ${ofUser}`
    const names = sql`${jsonList('g', own.name, from)} as groups`
    return own.id === own.name
      ? [names]
      : [names, sql`${jsonList('g', own.id, from, textIn('g', own.name))} as group_ids`]
  }

  toUser(row: SqlRow): User {
    const { users, groups } = this.#layout
    const { name: userID, ...entry } = readEntry(row, users)
    for (const [i, [attribute, { value }]] of [...users.values].entries()) {
      entry.attributes.set(attribute, [...new Set(readJsonList(row[`values${i}`]).map((text) => decode(value, text)))])
    }
    const names = readJsonList(row['groups'])
    const ids = readJsonList(row['group_ids'])
    const first = names.map((name, i) => names.indexOf(name) === i)
    const hasIds = groups?.own !== undefined && groups.own.id !== groups.own.name
    return {
      userID,
      ...entry,
      groups: names.filter((_, i) => first[i]),
      ...(hasIds ? { groupIds: ids.filter((_, i) => first[i]) } : {}),
    }
  }
}

/** The most members of a group that is read; a larger group is an error instead of a truncated list. */
const maxMembers = 100_000

/** Reads groups, from their own table or from the names in the memberships. */
export class GroupRows {
  readonly #layout: Layout
  readonly #groups: GroupTables<Column>
  readonly entry: EntryTable<Column>

  constructor(layout: Layout, groups: GroupTables<Column>) {
    this.#layout = layout
    this.#groups = groups
    const { table, group: name } = groups.members
    const times = { created: undefined, modified: undefined }
    this.entry = groups.own ?? { table, name, id: name, version: undefined, times, columns: new Map() }
  }

  /** The relation with the alias `g`. */
  get from(): Sql {
    const table = tableId(this.entry.table)
    if (this.#groups.own !== undefined) return sql`${table} as g`
    const name = identifier(this.entry.name.name)
    return sql`(select distinct ${name} from ${table} where ${name} is not null) as g`
  }

  get columns(): Sql {
    return join(entryColumns('g', this.entry))
  }

  toGroup(row: SqlRow): Group {
    const entry = readEntry(row, this.entry)
    const description = entry.attributes.first('description')
    return { ...entry, members: [], description }
  }

  async find(reader: SqlReader, by: 'name' | 'id', value: string, lock = false): Promise<Group | undefined> {
    const locked = lock && reader.dialect === 'postgres' ? sql` for update` : sql``
    const [row] = await reader.query(
      sql`select ${this.columns} from ${this.from} where ${equals('g', this.entry[by], value)} limit 1${locked}`,
    )
    return row === undefined ? undefined : this.toGroup(row)
  }

  async withMembers(reader: SqlReader, group: Group): Promise<Group> {
    const { users } = this.#layout
    const { members, own, userRef } = this.#groups
    const isGroup = equals('m', members.group, own !== undefined && own.ref === own.id ? group.id : group.name)
    const rows = await reader.query(
      sql`select distinct ${textIn('u', users.name)} as login, ${textIn('u', users.id)} as id from ${tableId(members.table)} as m join ${tableId(users.table)} as u on ${columnOf('u', userRef)} = ${columnOf('m', members.user)} where ${isGroup} order by 1 limit ${maxMembers + 1}`,
    )
    if (rows.length > maxMembers) {
      throw new GatewayError('TARGET_FAILED', `the group "${group.name}" has more than ${maxMembers} members`)
    }
    return {
      ...group,
      members: rows.map((row) => decode(users.name, String(row['login']))),
      memberIds: rows.map((row) => decode(users.id, String(row['id']))),
    }
  }
}

/** The values of a new row, or of one that changes. */
export type ColumnValues = readonly (readonly [Column, Sql])[]

/** Inserts a user or group with a key, a version and times, as far as the database does not set them. */
export async function insertEntry(
  tx: SqlTransaction,
  { table, name, id, version, times }: EntryTable<Column>,
  { named, values, returning }: { readonly named: string; readonly values: ColumnValues; readonly returning: Column },
): Promise<string> {
  const insert = insertInto(tableId(table), [
    [name, bound(name, named)],
    ...(id !== name && makesOwnKey(id) ? [[id, bound(id, newId())] as const] : []),
    ...values,
    ...firstVersion(version),
    ...firstTimes(times),
  ])
  const [row] = await tx.query(sql`${insert} returning cast(${identifier(returning.name)} as text) as returned`)
  return decode(returning, String(row?.['returned'] ?? ''))
}

/** Sets columns of a user or group, and gives it a new version and time. */
export async function updateEntry(
  tx: SqlTransaction,
  { table, id: key, version, times }: EntryTable<Column>,
  id: string,
  sets: readonly Sql[],
): Promise<void> {
  const all = [...sets, ...nextVersion(version), ...nextTime(times)]
  if (all.length > 0) await tx.run(sql`update ${tableId(table)} set ${join(all)} where ${equalTo(key, id)}`)
}

export async function deleteEntry(tx: SqlTransaction, { table, id: key }: EntryTable<Column>, id: string) {
  await tx.run(sql`delete from ${tableId(table)} where ${equalTo(key, id)}`)
}

const names = ['created', 'modified'] as const

/** In UTC. SQLite has several forms of a time, which are unified here. */
export function timeText(alias: string, column: Column): Sql {
  const own = columnOf(alias, column)
  if (column.dialect === 'sqlite') return sql`strftime('%Y-%m-%dT%H:%M:%fZ', ${own})`
  const utc = column.zoned === true ? sql`${own} at time zone 'UTC'` : own
  return sql`to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

/** The columns of an entry that `timesOf` reads. */
const timeTexts = (alias: string, times: EntryTimes<Column>): Sql[] =>
  names.flatMap((name) => {
    const column = times[name]
    return column === undefined ? [] : [sql`${timeText(alias, column)} as ${identifier(`time_${name}`)}`]
  })

/** Finer times are truncated to the millisecond. */
function timesOf(row: SqlRow): { readonly created?: Date | undefined; readonly modified?: Date | undefined } {
  const [created, modified] = names.map((name) => {
    const text = row[`time_${name}`]
    const canonical = typeof text === 'string' ? canonicalTimestamp(text) : undefined
    return canonical === undefined ? undefined : new Date(canonical)
  })
  return { created, modified }
}

const now = ({ dialect, zoned }: Column): Sql => {
  if (dialect === 'sqlite') return sql`strftime('%Y-%m-%d %H:%M:%f', 'now')`
  return zoned === true ? sql`clock_timestamp()` : sql`clock_timestamp() at time zone 'UTC'`
}

/** The times of a new row, if the database does not set them. */
const firstTimes = (times: EntryTimes<Column>): ColumnValues =>
  names.flatMap((name) => {
    const column = times[name]
    return column === undefined || column.hasDefault || column.generated ? [] : [[column, now(column)] as const]
  })

/** The time of a change, if the database does not compute it. */
export const nextTime = ({ modified }: EntryTimes<Column>): Sql[] =>
  modified === undefined || modified.generated ? [] : [sql`${identifier(modified.name)} = ${now(modified)}`]

/** The version of a new row, if the database does not set it. */
function firstVersion(version: Column | undefined): ColumnValues {
  if (version === undefined || version.hasDefault) return []
  return [[version, bound(version, version.kind === 'integer' ? '1' : newId())]]
}

export function nextVersion(version: Column | undefined): Sql[] {
  if (version === undefined) return []
  const column = identifier(version.name)
  const next = version.kind === 'integer' ? sql`coalesce(${column}, 0) + 1` : bound(version, newId())
  return [sql`${column} = ${next}`]
}
