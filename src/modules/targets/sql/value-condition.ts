import { type RawBuilder, sql } from 'kysely'
import type { CompareFilter, SubstringFilter } from '#identity/filter/ast.ts'
import { foldValue } from '#identity/filter/compare-values.ts'
import type { ValueFilter } from '#identity/filter/truth.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { type Column, canonical, encode, readsCanonical } from './column.ts'
import { columnOf, type Sql, textIn } from './table-sql.ts'

/** Holds of every value that passes a test, and, where it is exact, of no other. */
export interface Condition {
  readonly sql: Sql
  readonly exact: boolean
}

/** SQLite refuses a LIKE pattern of 50,000 bytes. */
const maxPatternBytes = 40_000
const kelvin = '\u212a'

/** A condition on one column that is not null; undefined when the database can be of no help. */
export function valueCondition(
  test: ValueFilter,
  alias: string,
  column: Column,
  dialect: SqlDialect,
): Condition | undefined {
  if (test.kind === 'substring') return substring(test, alias, column, dialect)
  if (test.kind === 'equal' || test.kind === 'approximate') return equal(test, alias, column, dialect)
  return order(test, test.kind, alias, column, dialect)
}

function equal(test: CompareFilter, alias: string, column: Column, dialect: SqlDialect): Condition | undefined {
  const { value, caseExact = false } = test
  const holdable = canonical(column, value)
  if (column.kind === 'integer' || column.kind === 'uuid' || column.kind === 'boolean') {
    // Compared as what it is, so that an index serves it.
    const same = holdable !== undefined && foldValue(holdable, caseExact) === foldValue(value, caseExact)
    if (!same) return { sql: sql`1 = 0`, exact: true }
    return { sql: sql`${columnOf(alias, column)} = ${encode(column, holdable, dialect)}`, exact: true }
  }
  if (!isText(value)) return { sql: sql`1 = 0`, exact: true }
  if (!readsCanonical(column, dialect)) return undefined
  const text = textIn(alias, column, dialect)
  if (caseExact) return { sql: sql`${binary(text, dialect)} = ${value}`, exact: true }
  if (isAscii(value)) return { sql: sql`${folded(text, value, dialect)} = ${value.toLowerCase()}`, exact: true }
  return like([value], text, dialect)
}

/** By the folded letters of ASCII, in which every database agrees; the rest is left open, and settled in memory. */
function substring(test: SubstringFilter, alias: string, column: Column, dialect: SqlDialect): Condition | undefined {
  const { initial = '', any, final = '', caseExact = false } = test
  const parts = [initial, ...any, final]
  if (!parts.every(isText)) return { sql: sql`1 = 0`, exact: true }
  if (!readsCanonical(column, dialect)) return undefined
  const condition = like(parts, textIn(alias, column, dialect), dialect)
  return condition === undefined ? undefined : { ...condition, exact: condition.exact && !caseExact }
}

const operators = {
  greaterOrEqual: sql`>=`,
  lessOrEqual: sql`<=`,
  greater: sql`>`,
  less: sql`<`,
} as const

/** Numbers alone: of texts, databases have ideas of their own about what comes first. */
function order(
  test: CompareFilter,
  kind: keyof typeof operators,
  alias: string,
  column: Column,
  dialect: SqlDialect,
): Condition | undefined {
  const value = canonical(column, test.value)
  if (column.kind !== 'integer' || value === undefined || !/^-?\d{1,18}$/.test(value)) return undefined
  // A number of more digits is compared as text in memory, so what the database says of those is not exact.
  const exact = column.bits !== 64
  if (!exact) return undefined
  return { sql: sql`${columnOf(alias, column)} ${operators[kind]} ${encode(column, value, dialect)}`, exact }
}

function like(parts: readonly string[], text: RawBuilder<string>, dialect: SqlDialect): Condition | undefined {
  const exact = parts.every(isAscii)
  const pattern = parts.map((part) => (exact ? escaped(part.toLowerCase()) : openPattern(part))).join('%')
  if (Buffer.byteLength(pattern) > maxPatternBytes) return undefined
  return { sql: sql`${folded(text, exact ? pattern : '', dialect)} like ${pattern} escape '\\'`, exact }
}

const escaped = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/**
 * Everything is left open that another letter than one of ASCII may fold to: what is not ASCII, `k` for the sign of
 * Kelvin, and `i` before a dot for the capital letter that has one.
 */
function openPattern(text: string): string {
  const lower = text.toLowerCase()
  const pieces = lower.split(/(?:i(?=\u0307)|\P{ASCII}|k)+/u)
  return pieces.map(escaped).join('%')
}

/** Letters of ASCII in lower case, in every locale. */
function folded(text: RawBuilder<string>, wanted: string, dialect: SqlDialect): Sql {
  const plain = /k/i.test(wanted) ? sql<string>`replace(${text}, ${kelvin}, 'k')` : text
  return sql`lower(${binary(plain, dialect)})`
}

/** By code points, in every locale. */
const binary = (text: RawBuilder<string>, dialect: SqlDialect): Sql =>
  dialect === 'postgres' ? sql`(${text} collate "C")` : sql`(${text} collate binary)`

const isAscii = (text: string): boolean => /^\p{ASCII}*$/u.test(text)

/** No database holds any other. */
const isText = (text: string): boolean => text.isWellFormed() && !text.includes('\0')
