import { type RawBuilder, sql } from 'kysely'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { type Column, canonical, encode, textOf } from './column.ts'

export type Sql = RawBuilder<unknown>

/** A column of a table that a statement knows by this name. */
export const columnOf = (alias: string, column: Column): Sql => sql.id(alias, column.name)

export const textIn = (alias: string, column: Column, dialect: SqlDialect): RawBuilder<string> =>
  textOf(column, columnOf(alias, column), dialect)

/** The value as a parameter that is compared with the column or written to it; it must be canonical. */
export const bound = (column: Column, value: string, dialect: SqlDialect): Sql => sql`${encode(column, value, dialect)}`

/** As the column itself compares; false for a value that it cannot hold. */
export function equals(alias: string, column: Column, value: string, dialect: SqlDialect): Sql {
  const found = canonical(column, value)
  return found === undefined ? sql`1 = 0` : sql`${columnOf(alias, column)} = ${bound(column, found, dialect)}`
}

/** To the letter, whatever letter case means to the column. */
export const equalsExactly = (column: Column, value: string, dialect: SqlDialect): Sql =>
  dialect === 'sqlite' && column.kind === 'text'
    ? sql`${sql.id(column.name)} = ${bound(column, value, dialect)} collate binary`
    : sql`${sql.id(column.name)} = ${bound(column, value, dialect)}`

export const allOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`1 = 1` : sql`(${sql.join(conditions, sql` and `)})`

export const anyOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`1 = 0` : sql`(${sql.join(conditions, sql` or `)})`

/** All that a query finds as one JSON list; null or empty when it finds nothing. One statement stays one snapshot. */
export function jsonList(value: RawBuilder<string>, from: Sql, order: Sql, dialect: SqlDialect): Sql {
  return dialect === 'postgres'
    ? sql`(select cast(json_agg(${value} order by ${order}) as text) ${from})`
    : sql`(select json_group_array(${value} order by ${order}) ${from})`
}

export function readJsonList(value: unknown): string[] {
  const list: unknown = typeof value === 'string' ? JSON.parse(value) : []
  return Array.isArray(list) ? list.map(String) : []
}

export const insertInto = (table: Sql, values: readonly (readonly [Column, Sql])[]): Sql => {
  if (values.length === 0) return sql`insert into ${table} default values`
  const columns = values.map(([column]) => sql.id(column.name))
  return sql`insert into ${table} (${sql.join(columns)}) values (${sql.join(values.map(([, value]) => value))})`
}
