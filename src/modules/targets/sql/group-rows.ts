import { type RawBuilder, sql } from 'kysely'
import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect, SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import { type Column, decode } from './column.ts'
import type { GroupLayout, Layout } from './layout.ts'
import { tableId } from './table-name.ts'
import { columnOf, equals, type Sql, textIn } from './table-sql.ts'
import { timesOf, timeTexts } from './table-times.ts'

/** Members that a group is read with; of a larger one nobody gets a part for the whole. */
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

  /** What is known as `g`. */
  get from(): Sql {
    const { own, members } = this.#groups
    if (own !== undefined) return sql`${tableId(own.table)} as g`
    const name = sql.id(members.group.name)
    return sql`(select distinct ${name} from ${tableId(members.table)} where ${name} is not null) as g`
  }

  get columns(): Sql {
    const text = (column: Column, as: string): RawBuilder<unknown> =>
      sql`${textIn('g', column, this.#dialect)} as ${sql.id(as)}`
    const { own } = this.#groups
    return sql.join([
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
