import { sql } from 'kysely'
import { valueMillis } from '#identity/entry-times.ts'
import type { ValueFilter } from '#identity/filter/truth.ts'
import type { SqlDialect, SqlRow } from '#protocols/sql/sql-database.ts'
import type { Column } from './column.ts'
import type { TimeColumns } from './layout.ts'
import { columnOf, type Sql } from './table-sql.ts'
import { canonicalTimestamp } from './timestamp.ts'
import type { Condition } from './value-condition.ts'

const names = ['created', 'modified'] as const

/** In UTC. SQLite has several forms of a time, which become one here. */
function timeText(alias: string, column: Column, dialect: SqlDialect): Sql {
  const own = columnOf(alias, column)
  if (dialect === 'sqlite') return sql`strftime('%Y-%m-%dT%H:%M:%fZ', ${own})`
  const utc = column.zoned === true ? sql`${own} at time zone 'UTC'` : own
  return sql`to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

/** What is read of an entry for `timesOf`. */
export const timeTexts = (alias: string, times: TimeColumns, dialect: SqlDialect): Sql[] =>
  names.flatMap((name) => {
    const column = times[name]
    return column === undefined ? [] : [sql`${timeText(alias, column, dialect)} as ${sql.id(`time_${name}`)}`]
  })

/** Finer times are shown as the millisecond that they are in. */
export function timesOf(row: SqlRow): { readonly created?: Date; readonly modified?: Date } {
  const [created, modified] = names.map((name) => {
    const text = row[`time_${name}`]
    const canonical = typeof text === 'string' ? canonicalTimestamp(text) : undefined
    return canonical === undefined ? undefined : new Date(canonical)
  })
  return { ...(created === undefined ? {} : { created }), ...(modified === undefined ? {} : { modified }) }
}

/** A time column as searches see it. */
export interface TimeField {
  /** Compared with what `bound` makes; PostgreSQL compares the column itself, so that an index serves it. */
  readonly compared: Sql
  /** Texts that sort as the times do. */
  readonly text: Sql
}

export const timeField = (alias: string, column: Column, dialect: SqlDialect): TimeField => {
  const text = timeText(alias, column, dialect)
  return { compared: dialect === 'sqlite' ? text : columnOf(alias, column), text }
}

/** Undefined for what is no comparison of times. A time counts as the whole millisecond that is shown. */
export function timeCondition(test: ValueFilter, { compared }: TimeField): Condition | undefined {
  const millis = test.kind === 'substring' ? undefined : valueMillis(test.value)
  if (test.kind === 'substring' || millis === undefined) return undefined
  const from = sql`${compared} >= ${new Date(millis).toISOString()}`
  const to = sql`${compared} < ${new Date(millis + 1).toISOString()}`
  const conditions = {
    equal: sql`${from} and ${to}`,
    approximate: sql`${from} and ${to}`,
    greaterOrEqual: from,
    greater: sql`${compared} >= ${new Date(millis + 1).toISOString()}`,
    less: sql`${compared} < ${new Date(millis).toISOString()}`,
    lessOrEqual: to,
  }
  return { sql: conditions[test.kind], exact: true }
}

const now = (column: Column, dialect: SqlDialect): Sql => {
  if (dialect === 'sqlite') return sql`strftime('%Y-%m-%d %H:%M:%f', 'now')`
  return column.zoned === true ? sql`clock_timestamp()` : sql`clock_timestamp() at time zone 'UTC'`
}

/** What a new row has for its times, where the database does not give it any. */
export const firstTimes = (times: TimeColumns, dialect: SqlDialect): (readonly [Column, Sql])[] =>
  names.flatMap((name) => {
    const column = times[name]
    return column === undefined || column.hasDefault || column.generated
      ? []
      : [[column, now(column, dialect)] as const]
  })

/** The time of a change, where the database does not compute it. */
export const nextTime = ({ modified }: TimeColumns, dialect: SqlDialect): Sql[] =>
  modified === undefined || modified.generated ? [] : [sql`${sql.id(modified.name)} = ${now(modified, dialect)}`]
