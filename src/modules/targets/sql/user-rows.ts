import { sql } from 'kysely'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import type { SqlDialect, SqlRow } from '#protocols/sql/sql-database.ts'
import { type Column, decode } from './column.ts'
import type { Layout } from './layout.ts'
import { tableId } from './table-name.ts'
import { columnOf, jsonList, readJsonList, type Sql, textIn } from './table-sql.ts'
import { timesOf, timeTexts } from './table-times.ts'

/** Reads whole users, each as one row of one statement. */
export class UserRows {
  readonly #layout: Layout
  readonly #dialect: SqlDialect

  constructor(layout: Layout, dialect: SqlDialect) {
    this.#layout = layout
    this.#dialect = dialect
  }

  /** Of the table that is known as `u`. */
  get columns(): Sql {
    const { users, groups } = this.#layout
    const text = (column: Column, as: string): Sql => sql`${textIn('u', column, this.#dialect)} as ${sql.id(as)}`
    const lists = users.values.map((values, i) => {
      const value = textIn('v', values.value, this.#dialect)
      const order = values.position === undefined ? value : columnOf('v', values.position)
      const from = sql`from ${tableId(values.table)} as v where ${columnOf('v', values.user)} = ${columnOf('u', users.id)} and ${columnOf('v', values.value)} is not null`
      return sql`${jsonList(value, from, order, this.#dialect)} as ${sql.id(`values${i}`)}`
    })
    return sql.join([
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
      sql`${jsonList(textIn('g', column, this.#dialect), from, name, this.#dialect)} as ${sql.id(as)}`
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
