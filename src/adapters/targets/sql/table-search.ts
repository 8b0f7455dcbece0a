import sql, { join, raw, type Sql } from 'sql-template-tag'
import { valueMillis } from '#identity/entry-times.ts'
import type { CompareFilter, Filter, SubstringFilter } from '#identity/filter/ast.ts'
import { type Truth, truthOf, type ValueFilter } from '#identity/filter/rewrite-filter.ts'
import {
  type Collection,
  pageOf as orderedPage,
  orderInMemory,
  type PageScope,
  pageInMemory,
  readPosition,
  unknownPosition,
  writePosition,
} from '#identity/paging.ts'
import type { SearchPage, SearchQuery, SortOrder } from '#identity/search.ts'
import { GatewayError } from '#kernel/errors.ts'
import { foldValue } from '#kernel/text/compare-texts.ts'
import type { SqlDialect, SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import {
  allOf,
  anyOf,
  type Column,
  canonical,
  columnOf,
  decode,
  encode,
  readsCanonical,
  textIn,
  valueRows,
} from './column.ts'
import { timeText } from './entry-rows.ts'
import type { ValuesTable } from './tables.ts'

/** Users or groups, as searches see them. */
export interface SearchSpace<T> {
  /** With its alias in the statement. */
  readonly from: Sql
  readonly alias: string
  /** Unique; the default order. */
  readonly key: Column
  /** The columns that are read. */
  readonly columns: Sql
  readonly fields: SearchFields
  readonly collection: Collection<T>
  read(row: SqlRow): T
}

const maxPage = 1000

/** The number of characters that count in sorting. */
const sortLength = 200

/**
 * A page of the matches of a filter. If the database cannot evaluate a filter exactly, it narrows the candidates, and
 * at most `limitInMemory` of them are tested here; more is BAD_REQUEST.
 */
export async function searchTable<T>(
  reader: SqlReader,
  space: SearchSpace<T>,
  query: SearchQuery,
  limitInMemory: number,
): Promise<SearchPage<T>> {
  const { filter } = query
  const bounded = { ...query, limit: Math.min(query.limit, maxPage) }
  const condition = filter === undefined ? always : filterCondition(filter, space.fields)
  if (condition?.exact === true) {
    const sortsOther = await sortsOtherLetters(reader, space, bounded.sort, condition.sql)
    return (sortsOther ? sortedPage : pageOf)(reader, space, bounded, condition.sql)
  }
  const narrowed = await reader.query(
    sql`select ${space.columns} from ${space.from} where ${condition?.sql ?? sql`1 = 1`} limit ${limitInMemory + 1}`,
  )
  requireAtMost(limitInMemory, narrowed)
  return pageInMemory(narrowed.map(space.read), bounded, space.collection)
}

const always: Condition = { sql: sql`1 = 1`, exact: true }

function requireAtMost(limit: number, { length }: readonly SqlRow[]): void {
  if (length <= limit) return
  const publicText = 'Too many entries would have to be looked at; narrow the filter.'
  throw new GatewayError('BAD_REQUEST', `${publicText} The limit is ${limit}.`, { publicText, keyword: 'tooMany' })
}

/** The most values that are sorted here. */
const maxSorted = 100_000

/** Databases fold letters beyond ASCII differently, if at all, so values with such letters are sorted here. */
async function sortsOtherLetters<T>(
  reader: SqlReader,
  { from, fields }: SearchSpace<T>,
  sort: SortOrder | undefined,
  condition: Sql,
): Promise<boolean> {
  const field = sort === undefined ? undefined : fields.get(sort.attribute.toLowerCase())
  if (field === undefined || 'time' in field) return false
  const text = firstText(field)
  const bytes = reader.dialect === 'postgres' ? sql`octet_length(${text})` : sql`length(cast(${text} as blob))`
  const found = await reader.query(
    sql`select 1 as other from ${from} where ${allOf([condition, sql`${bytes} <> length(${text})`])} limit 1`,
  )
  return found.length > 0
}

/** Reads the keys and sorted values of all matches, and then the rows of the page. */
async function sortedPage<T>(
  reader: SqlReader,
  space: SearchSpace<T>,
  query: SearchQuery,
  condition: Sql,
): Promise<SearchPage<T>> {
  const { key, alias, fields, from, columns, collection } = space
  const field = fields.get(query.sort?.attribute.toLowerCase() ?? '')
  const keyText = textIn(alias, key)
  const found = await reader.query(
    sql`select ${keyText} as sort_key, ${firstText(field)} as sort_text from ${from} where ${condition} limit ${maxSorted + 1}`,
  )
  requireAtMost(maxSorted, found)
  const { filter, sort } = query
  const ordered = orderInMemory(found, sort === undefined ? {} : { sort }, {
    of: collection.of,
    source: ({ sort_text: text }) => ({ values: () => (typeof text === 'string' ? [text] : []) }),
    key: ({ sort_key: own }) => decode(key, String(own)),
  })
  const page = orderedPage({ ...ordered, scope: { of: collection.of, filter, sort } }, query)
  if (page.items.length === 0) return { ...page, items: [] }
  const keys = page.items.map(({ sort_key: own }) => String(own))
  const rows = await reader.query(
    sql`select ${columns}, ${keyText} as sort_key from ${from} where ${allOf([condition, sql`${keyText} in (${join(keys)})`])}`,
  )
  const byKey = new Map(rows.map((row) => [String(row['sort_key']), row]))
  const items = keys.flatMap((own) => {
    const row = byKey.get(own)
    return row === undefined ? [] : [space.read(row)]
  })
  return { ...page, items }
}

async function pageOf<T>(
  reader: SqlReader,
  space: SearchSpace<T>,
  { filter, sort, offset, limit, after, uncounted = false }: SearchQuery,
  condition: Sql,
): Promise<SearchPage<T>> {
  const scope: PageScope = { of: space.collection.of, filter, sort }
  const order = new Order(space, sort)
  const behind = after === undefined ? [] : [order.behind(scope, after)]
  // One more than the limit shows whether there is another page.
  const rows =
    limit <= 0
      ? []
      : await reader.query(
          sql`select ${space.columns}, ${order.columns} from ${space.from} where ${allOf([condition, ...behind])} order by ${order.by} limit ${limit + 1} offset ${offset}`,
        )
  const counted = sql`select cast(count(*) as text) as total from ${space.from} where ${condition}`
  const [count] = uncounted ? [{ total: offset + rows.length }] : await reader.query(counted)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    items: page.map((row) => space.read(row)),
    total: Number(count?.['total'] ?? 0),
    ...(last !== undefined && rows.length > limit ? { next: order.position(scope, last) } : {}),
  }
}

/** Ascending by the sorted value, entries without one last, and then by the key; descending reverses all of that. */
class Order<T> {
  readonly #key: Column
  readonly #alias: string
  readonly #descending: boolean
  /** `exact` if letter case counts. */
  readonly #sorted: { readonly folded: Sql; readonly exact: Sql | undefined } | undefined

  constructor({ key, alias, fields }: SearchSpace<T>, sort: SortOrder | undefined) {
    this.#key = key
    this.#alias = alias
    this.#descending = sort?.descending ?? false
    if (sort === undefined) return
    const text = firstText(fields.get(sort.attribute.toLowerCase()))
    const exactText = binary(text, key.dialect)
    const exact = sort.caseExact ? sql`substr(${exactText}, 1, ${raw(String(sortLength))})` : undefined
    this.#sorted = { folded: sql`substr(lower(${exactText}), 1, ${raw(String(sortLength))})`, exact }
  }

  get #keyColumn(): Sql {
    return columnOf(this.#alias, this.#key)
  }

  /** The parts of a position. */
  get columns(): Sql {
    const key = sql`${textIn(this.#alias, this.#key)} as sort_key`
    const { folded, exact } = this.#sorted ?? {}
    return join([
      key,
      ...(folded === undefined ? [] : [sql`${folded} as sort_folded`]),
      ...(exact === undefined ? [] : [sql`${exact} as sort_exact`]),
    ])
  }

  get by(): Sql {
    const direction = this.#descending ? sql` desc` : sql` asc`
    const { folded, exact } = this.#sorted ?? {}
    const parts = [
      ...(folded === undefined ? [] : [sql`(${folded} is null)`, folded]),
      ...(exact === undefined ? [] : [exact]),
      this.#keyColumn,
    ]
    return join(parts.map((part) => sql`${part}${direction}`))
  }

  behind(scope: PageScope, after: string): Sql {
    const { entry, folded, exact = '' } = readPosition(scope, after)
    const key = canonical(this.#key, entry)
    if (key === undefined) throw unknownPosition()
    const past = this.#descending ? sql`<` : sql`>`
    const pastKey = sql`${this.#keyColumn} ${past} ${encode(this.#key, key)}`
    const sorted = this.#sorted
    if (sorted === undefined) return pastKey
    const none = sql`${sorted.folded} is null`
    if (folded === undefined) {
      const sameNone = allOf([none, pastKey])
      return this.#descending ? anyOf([sameNone, sql`${sorted.folded} is not null`]) : sameNone
    }
    const alike = [sql`${sorted.folded} = ${folded}`]
    const steps = [sql`${sorted.folded} ${past} ${folded}`]
    if (sorted.exact !== undefined) {
      steps.push(allOf([...alike, sql`${sorted.exact} ${past} ${exact}`]))
      alike.push(sql`${sorted.exact} = ${exact}`)
    }
    steps.push(allOf([...alike, pastKey]))
    return anyOf(this.#descending ? steps : [...steps, none])
  }

  position(scope: PageScope, row: SqlRow): string {
    const text = (name: string): string | undefined => {
      const value = row[name]
      return typeof value === 'string' ? value : undefined
    }
    const entry = decode(this.#key, text('sort_key') ?? '')
    return writePosition(scope, { entry, folded: text('sort_folded'), exact: text('sort_exact') })
  }
}

/** The first value of an attribute; null if it has none, or no column. */
function firstText(field: SearchField | undefined): Sql {
  if (field === undefined) return sql`cast(null as text)`
  if ('time' in field) return field.time.text
  if ('column' in field) return textIn(field.alias, field.column)
  const { value, position } = field.values
  const text = textIn('s', value)
  return sql`(select ${text} from ${valueRows('s', field.values, field.owner)} order by ${position === undefined ? text : columnOf('s', position)} limit 1)`
}

/** Where the values of an attribute are stored. */
export type SearchField =
  | { readonly alias: string; readonly column: Column }
  | { readonly values: ValuesTable<Column>; readonly owner: Sql }
  | { readonly time: TimeField }

/** By the attribute's name in lower case. */
type SearchFields = ReadonlyMap<string, SearchField>

/**
 * True for every match of the filter and, if it is exact, for nothing else; undefined if it would be true for
 * everything and is not exact. Throws BAD_REQUEST for a filter that is too large.
 */
function filterCondition(filter: Filter, fields: SearchFields): Condition | undefined {
  return conditionOf(truthOf(filter), fields)
}

function conditionOf(truth: Truth, fields: SearchFields): Condition | undefined {
  if ('parts' in truth) {
    const parts = truth.parts.map((part) => conditionOf(part, fields))
    const known = parts.filter((part) => part !== undefined)
    const complete = known.length === parts.length
    if (truth.kind === 'any' && !complete) return undefined
    if (known.length === 0 && !complete) return undefined
    const join = truth.kind === 'all' ? allOf : anyOf
    return { sql: join(known.map((part) => part.sql)), exact: complete && known.every(({ exact }) => exact) }
  }
  const field = fields.get(truth.test.attribute.toLowerCase())
  // No entry has an attribute that isn't stored.
  if (field === undefined) return { sql: truth.kind === 'absent' ? sql`1 = 1` : sql`1 = 0`, exact: true }
  switch (truth.kind) {
    case 'present':
      return { sql: present(field), exact: true }
    case 'absent':
      return { sql: sql`not ${present(field)}`, exact: true }
    case 'match':
      return match(truth.test, field)
    case 'mismatch': {
      const passes = match(truth.test, field)
      if (passes?.exact !== true) return { sql: present(field), exact: false }
      return { sql: sql`(${present(field)} and not ${passes.sql})`, exact: true }
    }
  }
}

function present(field: SearchField): Sql {
  if ('time' in field) return sql`(${field.time.text} is not null)`
  return 'column' in field
    ? sql`(${columnOf(field.alias, field.column)} is not null)`
    : exists(field.values, field.owner)
}

function match(test: ValueFilter, field: SearchField): Condition | undefined {
  if ('time' in field) {
    const condition = timeCondition(test, field.time)
    return condition === undefined ? undefined : { ...condition, sql: sql`(${condition.sql})` }
  }
  if ('column' in field) {
    const condition = valueCondition(test, field.alias, field.column)
    return condition === undefined ? undefined : { ...condition, sql: sql`(${condition.sql})` }
  }
  const condition = valueCondition(test, 'w', field.values.value)
  if (condition === undefined) return { sql: exists(field.values, field.owner), exact: false }
  return { sql: exists(field.values, field.owner, condition.sql), exact: condition.exact }
}

function exists(values: ValuesTable<Column>, owner: Sql, condition?: Sql): Sql {
  const tested = condition === undefined ? sql`` : sql` and ${condition}`
  return sql`exists (select 1 from ${valueRows('w', values, owner)}${tested})`
}

/** True for every value that passes a test, and, if it is exact, for no other. */
interface Condition {
  readonly sql: Sql
  readonly exact: boolean
}

/** SQLite rejects a LIKE pattern of 50,000 bytes. */
const maxPatternBytes = 40_000
const kelvin = '\u212a'
const dottedCapital = '\u0130'

/** A condition on one column that is not null; undefined if the database can't help. */
function valueCondition(test: ValueFilter, alias: string, column: Column): Condition | undefined {
  if (test.kind === 'substring') return substring(test, alias, column)
  if (test.kind === 'equal' || test.kind === 'approximate') return equal(test, alias, column)
  return order(test, test.kind, alias, column)
}

function equal(test: CompareFilter, alias: string, column: Column): Condition | undefined {
  const { value, caseExact = false } = test
  const holdable = canonical(column, value)
  if (column.kind === 'integer' || column.kind === 'uuid' || column.kind === 'boolean') {
    // Compared in its own type, so that an index serves it.
    const same = holdable !== undefined && foldValue(holdable, caseExact) === foldValue(value, caseExact)
    if (!same) return { sql: sql`1 = 0`, exact: true }
    return { sql: sql`${columnOf(alias, column)} = ${encode(column, holdable)}`, exact: true }
  }
  if (!isText(value)) return { sql: sql`1 = 0`, exact: true }
  if (!readsCanonical(column)) return undefined
  const { dialect } = column
  const text = textIn(alias, column)
  if (caseExact) return { sql: sql`${binary(text, dialect)} = ${value}`, exact: true }
  if (isAscii(value)) return { sql: sql`${folded(text, value, dialect)} = ${value.toLowerCase()}`, exact: true }
  return like([value], text, dialect)
}

/** By ASCII letters in lower case, on which databases agree; other characters are tested in memory. */
function substring(test: SubstringFilter, alias: string, column: Column): Condition | undefined {
  const { initial = '', any, final = '', caseExact = false } = test
  const parts = [initial, ...any, final]
  if (!parts.every(isText)) return { sql: sql`1 = 0`, exact: true }
  if (!readsCanonical(column)) return undefined
  const condition = like(parts, textIn(alias, column), column.dialect)
  return condition === undefined ? undefined : { ...condition, exact: condition.exact && !caseExact }
}

const operators = {
  greaterOrEqual: sql`>=`,
  lessOrEqual: sql`<=`,
  greater: sql`>`,
  less: sql`<`,
} as const

/** Only numbers: databases sort texts differently. */
function order(
  test: CompareFilter,
  kind: keyof typeof operators,
  alias: string,
  column: Column,
): Condition | undefined {
  const value = canonical(column, test.value)
  if (column.kind !== 'integer' || value === undefined || !/^-?\d{1,18}$/.test(value)) return undefined
  // A number with more digits is compared as text in memory, so the database's answer about it is not exact.
  const exact = column.bits !== 64
  if (!exact) return undefined
  return { sql: sql`${columnOf(alias, column)} ${operators[kind]} ${encode(column, value)}`, exact }
}

function like(parts: readonly string[], text: Sql, dialect: SqlDialect): Condition | undefined {
  const exact = parts.every(isAscii)
  const pattern = parts.map((part) => (exact ? escaped(part.toLowerCase()) : openPattern(part))).join('%')
  if (Buffer.byteLength(pattern) > maxPatternBytes) return undefined
  return { sql: sql`${folded(text, exact ? pattern : '', dialect)} like ${pattern} escape '\\'`, exact }
}

const escaped = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/**
 * Leaves every character open that another character than an ASCII letter may fold to: non-ASCII, `k` for the Kelvin
 * sign, and `i` for the dotted capital.
 */
function openPattern(text: string): string {
  const lower = text.toLowerCase()
  const pieces = lower.split(/(?:\P{ASCII}|[ik])+/u)
  return pieces.map(escaped).join('%')
}

/** ASCII letters in lower case, in every locale, and the two others that fold to an ASCII letter, if one is wanted. */
function folded(text: Sql, wanted: string, dialect: SqlDialect): Sql {
  const plain = /k/i.test(wanted) ? sql`replace(${text}, ${kelvin}, 'k')` : text
  const dotted = /i/i.test(wanted) ? sql`replace(${plain}, ${dottedCapital}, ${dottedCapital.toLowerCase()})` : plain
  return sql`lower(${binary(dotted, dialect)})`
}

/** By code points, in every locale. */
const binary = (text: Sql, dialect: SqlDialect): Sql =>
  dialect === 'postgres' ? sql`(${text} collate "C")` : sql`(${text} collate binary)`

const isAscii = (text: string): boolean => /^\p{ASCII}*$/u.test(text)

/** No database stores any other. */
const isText = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** A time column as searches see it. */
interface TimeField {
  /** Compared with the result of `bound`; PostgreSQL compares the column itself, so that an index serves it. */
  readonly compared: Sql
  /** Texts that sort like the times. */
  readonly text: Sql
}

export const timeField = (alias: string, column: Column): TimeField => {
  const text = timeText(alias, column)
  return { compared: column.dialect === 'sqlite' ? text : columnOf(alias, column), text }
}

/** Undefined if the value isn't a time. A time means its whole millisecond, as shown. */
function timeCondition(test: ValueFilter, { compared }: TimeField): Condition | undefined {
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
