import { type RawBuilder, sql } from 'kysely'
import type { SqlDialect, SqlValue } from '#protocols/sql/sql-database.ts'
import { canonicalDate, canonicalTimestamp } from './timestamp.ts'

export type ColumnKind =
  | 'text'
  /** Filled up with spaces. */
  | 'padded'
  | 'integer'
  | 'decimal'
  | 'float'
  | 'boolean'
  | 'timestamp'
  | 'date'
  | 'uuid'
  /** SQLite makes a number of whatever looks like one. */
  | 'affine'
  /** Checked by the database alone: enumerations, addresses and the like. */
  | 'other'
  | 'binary'

/** A column as the database describes it. */
export interface Column {
  readonly name: string
  readonly kind: ColumnKind
  /** As the database names it. */
  readonly type: string
  /** In characters. */
  readonly maxLength?: number
  /** Of an integer. */
  readonly bits?: 16 | 32 | 64
  /** Digits in all, and behind the point. */
  readonly precision?: number
  readonly scale?: number
  readonly zoned?: boolean
  readonly required: boolean
  readonly hasDefault: boolean
  /** Computed by the database. */
  readonly generated: boolean
}

const decimalSyntax = /^-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/

/** The value as it will be read back, or undefined when the column cannot hold it so that it comes back as itself. */
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
  // What reads as a number is stored as one, and comes back in the form that numbers have.
  return kind !== 'affine' || value.trim() === '' || Number.isNaN(Number(value)) || isPlainNumber(value, 15)
}

/** Of so few digits that a floating-point number gives them back, and neither so large nor so small that it is written otherwise. */
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

/** A canonical value as it is bound to a parameter that is compared with the column, or written to it. */
export function encode({ kind }: Column, value: string, dialect: SqlDialect): SqlValue {
  if (dialect === 'postgres') return value
  if (kind === 'boolean') return value === 'true' ? 1 : 0
  if (kind === 'integer') return BigInt(value)
  return kind === 'timestamp' ? value.replace('T', ' ').replace('Z', '') : value
}

/** What `textOf` read, in its canonical form; what has none, since the database does not insist, as it is. */
export function decode(column: Column, text: string): string {
  switch (column.kind) {
    case 'decimal':
      return text.includes('.') ? text.replace(/\.?0+$/, '') : text
    // A floating-point number may be written with more digits than tell it from its neighbours.
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

/** The column's value as text. */
export function textOf({ kind, zoned }: Column, column: RawBuilder<unknown>, dialect: SqlDialect): RawBuilder<string> {
  if (dialect === 'sqlite') return sql`cast(${column} as text)`
  if (kind !== 'timestamp') return sql`cast(${column} as text)`
  const utc = zoned === true ? sql`${column} at time zone 'UTC'` : column
  return sql`to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`
}

/** `textOf` gives the canonical form already, so that text can be looked for in it. */
export function readsCanonical({ kind }: Column, dialect: SqlDialect): boolean {
  switch (kind) {
    case 'text':
    case 'padded':
    case 'integer':
    case 'uuid':
    case 'other':
      return true
    case 'boolean':
    case 'date':
      return dialect === 'postgres'
    default:
      return false
  }
}
