import sql, { join, type Sql } from 'sql-template-tag'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect, SqlValue } from '#protocols/sql/sql-database.ts'
import { identifier } from '#protocols/sql/sql-database.ts'
import { tableId, type ValuesTable } from './tables.ts'

export type ColumnKind =
  | 'text'
  /** Padded with spaces. */
  | 'padded'
  | 'integer'
  | 'decimal'
  | 'float'
  | 'boolean'
  | 'timestamp'
  | 'date'
  | 'uuid'
  /** SQLite turns text that looks like a number into one. */
  | 'affine'
  /** Only the database validates them: enumerations, addresses and the like. */
  | 'other'
  | 'binary'

/** A column as the database describes it. */
export interface Column {
  readonly dialect: SqlDialect
  readonly name: string
  readonly kind: ColumnKind
  /** The database's name for it. */
  readonly type: string
  /** In characters. */
  readonly maxLength?: number
  /** For an integer. */
  readonly bits?: 16 | 32 | 64
  /** All digits, and those after the point. */
  readonly precision?: number
  readonly scale?: number
  readonly zoned?: boolean
  readonly required: boolean
  readonly hasDefault: boolean
  /** The default of a column of texts, if it is a constant. */
  readonly defaultText?: string
  /** Computed by the database. */
  readonly generated: boolean
}

/** The text of an SQL constant such as `'Staff'::character varying`; undefined for any other expression. */
export const constantText = (expression: string): string | undefined =>
  /^'((?:[^']|'')*)'(?:::[\w ]+(?:\(\d+\))?)?$/.exec(expression)?.[1]?.replaceAll("''", "'")

const decimalSyntax = /^-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/

/** The value as it will be read back, or undefined if the column cannot store it without changing it. */
export function canonical(column: Column, value: string): string | undefined {
  if (value.includes('\0') || !value.isWellFormed()) return undefined
  switch (column.kind) {
    case 'integer': {
      if (!/^(?:0|-?[1-9]\d{0,18})$/.test(value)) return undefined
      return BigInt.asIntN(column.bits ?? 64, BigInt(value)) === BigInt(value) ? value : undefined
    }
    case 'decimal':
      return fitsDecimal(column, value) ? value : undefined
    case 'float':
      return isPlainNumber(value, column.precision ?? 15) ? value : undefined
    case 'boolean': {
      const word = value.toLowerCase()
      return word === 'true' || word === 'false' ? word : undefined
    }
    case 'timestamp':
      return canonicalTimestamp(value)
    case 'date':
      return canonicalDate(value)
    case 'uuid':
      return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(value) ? value.toLowerCase() : undefined
    case 'binary':
      return undefined
    default:
      return fitsText(column, value) ? value : undefined
  }
}

function fitsText({ kind, maxLength }: Column, value: string): boolean {
  if (maxLength !== undefined && value.length > maxLength && Array.from(value).length > maxLength) return false
  if (kind === 'padded') return !value.endsWith(' ')
  // A text that reads like a number is stored as one, and comes back in the form of numbers.
  return kind !== 'affine' || value.trim() === '' || Number.isNaN(Number(value)) || isPlainNumber(value, 15)
}

/** Has so few digits that a floating-point number returns them, and is neither too large nor too small for that. */
function isPlainNumber(value: string, precision: number): boolean {
  if (!decimalSyntax.test(value) || value === '-0') return false
  const [whole = '', fraction = ''] = value.replace('-', '').split('.')
  if (whole === '0') return /^0{0,3}(?:[1-9]|$)/.test(fraction) && fraction.replace(/^0+/, '').length <= precision
  return whole.length + fraction.length <= precision
}

function fitsDecimal({ precision, scale = 0 }: Column, value: string): boolean {
  if (!decimalSyntax.test(value) || value === '-0' || value.length > 1000) return false
  if (precision === undefined) return true
  const [whole = '', fraction = ''] = value.replace('-', '').split('.')
  return fraction.length <= scale && (whole === '0' ? 0 : whole.length) <= precision - scale
}

/** A canonical value as a parameter that is compared with the column, or written to it. */
export function encode({ kind, dialect }: Column, value: string): SqlValue {
  if (dialect === 'postgres') return value
  if (kind === 'boolean') return value === 'true' ? 1 : 0
  if (kind === 'integer') return BigInt(value)
  return kind === 'timestamp' ? value.replace('T', ' ').replace('Z', '') : value
}

/** The canonical form of a text from `textIn`; a text without one, which a lax database may return, stays unchanged. */
export function decode(column: Column, text: string): string {
  switch (column.kind) {
    case 'decimal':
      return text.includes('.') ? text.replace(/\.?0+$/, '') : text
    // A floating-point number may be written with more digits than it has.
    case 'float':
    case 'affine':
      return /^-?\d{1,17}\.\d{1,25}$/.test(text) ? String(Number(text)) : text
    case 'boolean':
      return text === '1' || text === 't' ? 'true' : text === '0' || text === 'f' ? 'false' : text
    case 'timestamp':
      return canonicalTimestamp(text) ?? text
    default:
      return text
  }
}

/** The column's value as text, of a table with this alias. */
export function textIn(alias: string, column: Column): Sql {
  const own = columnOf(alias, column)
  if (column.dialect === 'sqlite' || column.kind !== 'timestamp') return sql`cast(${own} as text)`
  const utc = column.zoned === true ? sql`${own} at time zone 'UTC'` : own
  return sql`to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`
}

const alwaysCanonical = new Set<ColumnKind>(['text', 'padded', 'integer', 'uuid', 'other'])

/** `textIn` already returns the canonical form, so that text can be searched in it. */
export const readsCanonical = ({ kind, dialect }: Column): boolean =>
  alwaysCanonical.has(kind) || (dialect === 'postgres' && (kind === 'boolean' || kind === 'date'))

const syntax = /^(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?$/i

/** An ISO 8601 time in UTC (also without an offset), to the microsecond, without trailing zeros; else undefined. */
export function canonicalTimestamp(text: string): string | undefined {
  const parts = syntax.exec(text)
  if (parts === null) return undefined
  const [, day = '', hours = '', minutes = '', seconds = '', fraction = '', offset = 'Z'] = parts
  if (canonicalDate(day) === undefined || hours > '23' || minutes > '59' || seconds > '59') return undefined
  if (/[1-9]/.test(fraction.slice(6))) return undefined
  const away = offsetMinutes(offset)
  if (away === undefined) return undefined
  const time = new Date(Date.parse(`${day}T${hours}:${minutes}:${seconds}Z`) - away * 60_000)
  const year = time.getUTCFullYear()
  if (year < 1 || year > 9999) return undefined
  const part = fraction.slice(0, 6).replace(/0+$/, '')
  return `${time.toISOString().slice(0, 19)}${part === '' ? '' : `.${part}`}Z`
}

function canonicalDate(text: string): string | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text < '0001-01-01') return undefined
  const time = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text) ? text : undefined
}

function offsetMinutes(offset: string): number | undefined {
  if (/^z$/i.test(offset)) return 0
  const hours = Number(offset.slice(1, 3))
  const minutes = Number(offset.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return undefined
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}

/** The most values of one call; more are rejected before they reach a database. */
const maxValues = 1000

/** Throws BAD_REQUEST with the attribute's name. */
export function refuse(attribute: string, reason: string): never {
  throw refusedValue(attribute, `"${attribute}" ${reason}.`, reason)
}

/** The value as the column will return it. Throws BAD_REQUEST with the names of the attribute and the column. */
export function acceptValue(attribute: string, column: Column, value: string): string {
  const found = canonical(column, value)
  if (found !== undefined) return found
  const { maxLength, type, name } = column
  const limit = maxLength === undefined ? '' : ` of at most ${maxLength} characters`
  const detail = `"${attribute}": column "${name}" (${type}${limit}) cannot hold the value`
  throw refusedValue(attribute, detail, 'has a value that cannot be stored')
}

const refusedValue = (attribute: string, detail: string, reason: string): GatewayError =>
  new GatewayError('BAD_REQUEST', detail, {
    attribute,
    publicText: (shown = `"${attribute}"`) => `${shown} ${reason}.`,
    keyword: 'invalidValue',
  })

/** The values as the column will return them, each once. */
export function acceptValues(attribute: string, column: Column, values: readonly string[]): string[] {
  if (values.length > maxValues) refuse(attribute, `has more than ${maxValues} values`)
  return [...new Set(values.map((value) => acceptValue(attribute, column, value)))]
}

/** A column of a table with this alias in a statement. */
export const columnOf = (alias: string, column: Column): Sql => identifier(alias, column.name)

/** The canonical value as a parameter that is compared with the column or written to it. */
export const bound = (column: Column, value: string): Sql => sql`${encode(column, value)}`

/** Compares like the column; false for a value that it cannot store. */
export function equals(alias: string, column: Column, value: string): Sql {
  const found = canonical(column, value)
  return found === undefined ? sql`1 = 0` : sql`${columnOf(alias, column)} = ${bound(column, found)}`
}

/** `"column" = value`, as a condition, or as a part of `set`, where undefined clears the column. */
export const equalTo = (column: Column, value: string | undefined): Sql =>
  sql`${identifier(column.name)} = ${value === undefined ? sql`null` : bound(column, value)}`

/** Compares exactly, even if the column ignores letter case. */
export const equalsExactly = (column: Column, value: string): Sql =>
  column.dialect === 'sqlite' && column.kind === 'text'
    ? sql`${equalTo(column, value)} collate binary`
    : equalTo(column, value)

/** The rows with the values of one attribute of a user, after FROM. */
export function valueRows(alias: string, { table, user, value, fixed }: ValuesTable<Column>, owner: Sql): Sql {
  const kind = fixed === undefined ? sql`` : sql` and ${equals(alias, fixed.column, fixed.value)}`
  return sql`${tableId(table)} as ${identifier(alias)} where ${columnOf(alias, user)} = ${owner} and ${columnOf(alias, value)} is not null${kind}`
}

export const allOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`1 = 1` : sql`(${join(conditions, ' and ')})`

export const anyOf = (conditions: readonly Sql[]): Sql =>
  conditions.length === 0 ? sql`1 = 0` : sql`(${join(conditions, ' or ')})`

/** All values of a column in a query as one JSON list; null or empty if there are none. One statement stays one snapshot. */
export function jsonList(alias: string, column: Column, from: Sql, order = textIn(alias, column)): Sql {
  const value = textIn(alias, column)
  return column.dialect === 'postgres'
    ? sql`(select cast(json_agg(${value} order by ${order}) as text) ${from})`
    : sql`(select json_group_array(${value} order by ${order}) ${from})`
}

export function readJsonList(value: unknown): string[] {
  const list: unknown = typeof value === 'string' ? JSON.parse(value) : []
  return Array.isArray(list) ? list.map(String) : []
}

export const insertInto = (table: Sql, values: readonly (readonly [Column, Sql])[]): Sql => {
  if (values.length === 0) return sql`insert into ${table} default values`
  const columns = values.map(([column]) => identifier(column.name))
  return sql`insert into ${table} (${join(columns)}) values (${join(values.map(([, value]) => value))})`
}
