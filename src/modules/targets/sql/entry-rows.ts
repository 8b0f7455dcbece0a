import sql, { join, type Sql } from 'sql-template-tag'
import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { SqlDialect, SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import { identifier } from '#protocols/sql/sql-database.ts'
import {
  bound,
  type Column,
  canonicalTimestamp,
  columnOf,
  decode,
  equals,
  jsonList,
  readJsonList,
  textIn,
} from './column.ts'
import type { GroupLayout, Layout, TimeColumns } from './layout.ts'
import { tableId } from './tables-config.ts'

/** Reads whole users, each as one row of one statement. */
export class UserRows {
  readonly #layout: Layout
  readonly #dialect: SqlDialect

  constructor(layout: Layout, dialect: SqlDialect) {
    this.#layout = layout
    this.#dialect = dialect
  }

  /** The columns of the table with the alias `u`. */
  get columns(): Sql {
    const { users, groups } = this.#layout
    const text = (column: Column, as: string): Sql => sql`${textIn('u', column, this.#dialect)} as ${identifier(as)}`
    const lists = users.values.map((values, i) => {
      const value = textIn('v', values.value, this.#dialect)
      const order = values.position === undefined ? value : columnOf('v', values.position)
      const from = sql`from ${tableId(values.table)} as v where ${columnOf('v', values.user)} = ${columnOf('u', users.id)} and ${columnOf('v', values.value)} is not null`
      return sql`${jsonList(value, from, order, this.#dialect)} as ${identifier(`values${i}`)}`
    })
    return join([
      text(users.name, 'login'),
      text(users.id, 'id'),
      ...(users.version === undefined ? [] : [text(users.version, 'version')]),
      ...timeTexts('u', users.times, this.#dialect),
      ...users.columns.map(({ column }, i) => text(column, `column${i}`)),
      ...lists,
      ...(groups === undefined ? [] : this.#groupLists()),
    ])
  }

  #groupLists(): Sql[] {
    const { groups } = this.#layout
    if (groups === undefined) return []
    const { members, own, userRef } = groups
    const ofUser = sql`${columnOf('m', members.user)} = ${columnOf('u', userRef)}`
    if (own === undefined) {
      const name = textIn('m', members.group, this.#dialect)
      return [
        sql`${jsonList(name, sql`from ${tableId(members.table)} as m where ${ofUser}`, name, this.#dialect)} as groups`,
      ]
    }
    const name = textIn('g', own.name, this.#dialect)
    const from = sql`from ${tableId(members.table)} as m join ${tableId(own.table)} as g on ${columnOf('g', own.ref)} = ${columnOf('m', members.group)} where ${ofUser}`
    const list = (column: Column, as: string): Sql =>
      sql`${jsonList(textIn('g', column, this.#dialect), from, name, this.#dialect)} as ${identifier(as)}`
    return own.id === own.name ? [list(own.name, 'groups')] : [list(own.name, 'groups'), list(own.id, 'group_ids')]
  }

  toUser(row: SqlRow): User {
    const { users, groups } = this.#layout
    const attributes = new Attributes()
    for (const [i, { attribute, column }] of users.columns.entries()) {
      const value = row[`column${i}`]
      if (typeof value === 'string') attributes.set(attribute, [decode(column, value)])
    }
    for (const [i, { attribute, value }] of users.values.entries()) {
      attributes.set(attribute, [...new Set(readJsonList(row[`values${i}`]).map((text) => decode(value, text)))])
    }
    const names = readJsonList(row['groups'])
    const ids = readJsonList(row['group_ids'])
    const first = names.map((name, i) => names.indexOf(name) === i)
    const hasIds = groups?.own !== undefined && groups.own.id !== groups.own.name
    return {
      userID: decode(users.name, String(row['login'] ?? '')),
      id: decode(users.id, String(row['id'] ?? '')),
      attributes,
      groups: names.filter((_, i) => first[i]),
      ...(hasIds ? { groupIds: ids.filter((_, i) => first[i]) } : {}),
      ...(users.version === undefined ? {} : { version: String(row['version'] ?? '') }),
      ...timesOf(row),
    }
  }
}

/** The most members of a group that is read; a larger group is an error instead of a truncated list. */
const maxMembers = 100_000

/** Reads groups, from their own table or from the names in the memberships. */
export class GroupRows {
  readonly #layout: Layout
  readonly #groups: GroupLayout
  readonly #dialect: SqlDialect
  readonly name: Column
  readonly id: Column

  constructor(layout: Layout, groups: GroupLayout, dialect: SqlDialect) {
    this.#layout = layout
    this.#groups = groups
    this.#dialect = dialect
    this.name = groups.own?.name ?? groups.members.group
    this.id = groups.own?.id ?? this.name
  }

  /** The relation with the alias `g`. */
  get from(): Sql {
    const { own, members } = this.#groups
    if (own !== undefined) return sql`${tableId(own.table)} as g`
    const name = identifier(members.group.name)
    return sql`(select distinct ${name} from ${tableId(members.table)} where ${name} is not null) as g`
  }

  get columns(): Sql {
    const text = (column: Column, as: string): Sql => sql`${textIn('g', column, this.#dialect)} as ${identifier(as)}`
    const { own } = this.#groups
    return join([
      text(this.name, 'name'),
      text(this.id, 'id'),
      ...(own?.version === undefined ? [] : [text(own.version, 'version')]),
      ...(own === undefined ? [] : timeTexts('g', own.times, this.#dialect)),
      ...(own?.columns ?? []).map(({ column }, i) => text(column, `column${i}`)),
    ])
  }

  toGroup(row: SqlRow): Group {
    const { own } = this.#groups
    const attributes = new Attributes()
    for (const [i, { attribute, column }] of (own?.columns ?? []).entries()) {
      const value = row[`column${i}`]
      if (typeof value === 'string') attributes.set(attribute, [decode(column, value)])
    }
    const description = attributes.first('description')
    return {
      id: decode(this.id, String(row['id'] ?? '')),
      name: decode(this.name, String(row['name'] ?? '')),
      members: [],
      attributes,
      ...(description === undefined ? {} : { description }),
      ...(own?.version === undefined ? {} : { version: String(row['version'] ?? '') }),
      ...timesOf(row),
    }
  }

  async find(reader: SqlReader, by: 'name' | 'id', value: string, lock = false): Promise<Group | undefined> {
    const locked = lock && reader.dialect === 'postgres' ? sql` for update` : sql``
    const column = by === 'name' ? this.name : this.id
    const [row] = await reader.query(
      sql`select ${this.columns} from ${this.from} where ${equals('g', column, value, this.#dialect)} limit 1${locked}`,
    )
    return row === undefined ? undefined : this.toGroup(row)
  }

  async withMembers(reader: SqlReader, group: Group): Promise<Group> {
    const { users } = this.#layout
    const { members, own, userRef } = this.#groups
    const isGroup =
      own === undefined
        ? equals('m', members.group, group.name, this.#dialect)
        : equals('m', members.group, own.ref === own.id ? group.id : group.name, this.#dialect)
    const rows = await reader.query(
      sql`select distinct ${textIn('u', users.name, this.#dialect)} as login, ${textIn('u', users.id, this.#dialect)} as id from ${tableId(members.table)} as m join ${tableId(users.table)} as u on ${columnOf('u', userRef)} = ${columnOf('m', members.user)} where ${isGroup} order by 1 limit ${maxMembers + 1}`,
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

const names = ['created', 'modified'] as const

/** In UTC. SQLite has several forms of a time, which are unified here. */
export function timeText(alias: string, column: Column, dialect: SqlDialect): Sql {
  const own = columnOf(alias, column)
  if (dialect === 'sqlite') return sql`strftime('%Y-%m-%dT%H:%M:%fZ', ${own})`
  const utc = column.zoned === true ? sql`${own} at time zone 'UTC'` : own
  return sql`to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

/** The columns of an entry that `timesOf` reads. */
const timeTexts = (alias: string, times: TimeColumns, dialect: SqlDialect): Sql[] =>
  names.flatMap((name) => {
    const column = times[name]
    return column === undefined ? [] : [sql`${timeText(alias, column, dialect)} as ${identifier(`time_${name}`)}`]
  })

/** Finer times are truncated to the millisecond. */
function timesOf(row: SqlRow): { readonly created?: Date; readonly modified?: Date } {
  const [created, modified] = names.map((name) => {
    const text = row[`time_${name}`]
    const canonical = typeof text === 'string' ? canonicalTimestamp(text) : undefined
    return canonical === undefined ? undefined : new Date(canonical)
  })
  return { ...(created === undefined ? {} : { created }), ...(modified === undefined ? {} : { modified }) }
}

const now = (column: Column, dialect: SqlDialect): Sql => {
  if (dialect === 'sqlite') return sql`strftime('%Y-%m-%d %H:%M:%f', 'now')`
  return column.zoned === true ? sql`clock_timestamp()` : sql`clock_timestamp() at time zone 'UTC'`
}

/** The times of a new row, if the database does not set them. */
export const firstTimes = (times: TimeColumns, dialect: SqlDialect): (readonly [Column, Sql])[] =>
  names.flatMap((name) => {
    const column = times[name]
    return column === undefined || column.hasDefault || column.generated
      ? []
      : [[column, now(column, dialect)] as const]
  })

/** The time of a change, if the database does not compute it. */
export const nextTime = ({ modified }: TimeColumns, dialect: SqlDialect): Sql[] =>
  modified === undefined || modified.generated ? [] : [sql`${identifier(modified.name)} = ${now(modified, dialect)}`]

/** The version of a new row, if the database does not set it. */
export function firstVersion(version: Column | undefined, dialect: SqlDialect): (readonly [Column, Sql])[] {
  if (version === undefined || version.hasDefault) return []
  return [[version, bound(version, version.kind === 'integer' ? '1' : newId(), dialect)]]
}

export function nextVersion(version: Column | undefined, dialect: SqlDialect): Sql[] {
  if (version === undefined) return []
  const column = identifier(version.name)
  const next = version.kind === 'integer' ? sql`coalesce(${column}, 0) + 1` : bound(version, newId(), dialect)
  return [sql`${column} = ${next}`]
}
