import { sql } from 'kysely'
import { type Collection, pageInMemory } from '#identity/page-in-memory.ts'
import { type PageScope, readPosition, unknownPosition, writePosition } from '#identity/page-position.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDialect, SqlReader, SqlRow } from '#protocols/sql/sql-database.ts'
import type { SearchPage, SearchQuery } from '#sdk/target.ts'
import { type Column, canonical, decode, encode } from './column.ts'
import { filterCondition, type SearchField, type SearchFields } from './filter-condition.ts'
import { tableId } from './table-name.ts'
import { allOf, anyOf, columnOf, type Sql, textIn } from './table-sql.ts'

/** What is searched: the users or the groups. */
export interface SearchSpace<T> {
  /** With its name in the statement. */
  readonly from: Sql
  readonly alias: string
  /** Unique; the order where none is asked for. */
  readonly key: Column
  /** What is read of each. */
  readonly columns: Sql
  readonly fields: SearchFields
  readonly collection: Collection<T>
  read(row: SqlRow): T
}

export const maxPage = 1000

/** Characters of a value that count when it is sorted by. */
const sortLength = 200

/**
 * A page of those that a filter is true of. A filter that the database cannot answer exactly is narrowed by it, and at
 * most `limitInMemory` of what is left are looked at here; more is BAD_REQUEST.
 */
export async function searchTable<T>(
  reader: SqlReader,
  space: SearchSpace<T>,
  query: SearchQuery,
  limitInMemory: number,
): Promise<SearchPage<T>> {
  const { filter } = query
  const bounded = { ...query, limit: Math.min(query.limit, maxPage) }
  if (filter === undefined) return pageOf(reader, space, bounded, sql`1 = 1`)
  const condition = filterCondition(filter, space.fields, reader.dialect)
  if (condition?.exact === true) return pageOf(reader, space, bounded, condition.sql)
  const narrowed = await reader.query(
    sql`select ${space.columns} from ${space.from} where ${condition?.sql ?? sql`1 = 1`} limit ${limitInMemory + 1}`,
  )
  if (narrowed.length > limitInMemory) {
    const publicText = 'Too many entries would have to be looked at; narrow the filter.'
    throw new GatewayError('BAD_REQUEST', `${publicText} The limit is ${limitInMemory}.`, {
      publicText,
      keyword: 'tooMany',
    })
  }
  return pageInMemory(narrowed.map(space.read), bounded, space.collection)
}

async function pageOf<T>(
  reader: SqlReader,
  space: SearchSpace<T>,
  { filter, sort, offset, limit, after }: SearchQuery,
  condition: Sql,
): Promise<SearchPage<T>> {
  const scope: PageScope = { of: space.collection.of, filter, sort }
  const order = new Order(space, sort, reader.dialect)
  const behind = after === undefined ? [] : [order.behind(scope, after)]
  // One more than asked for tells whether there is another page.
  const rows =
    limit <= 0
      ? []
      : await reader.query(
          sql`select ${space.columns}, ${order.columns} from ${space.from} where ${allOf([condition, ...behind])} order by ${order.by} limit ${limit + 1} offset ${offset}`,
        )
  const [count] = await reader.query(sql`select cast(count(*) as text) as total from ${space.from} where ${condition}`)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    items: page.map((row) => space.read(row)),
    total: Number(count?.['total'] ?? 0),
    ...(last !== undefined && rows.length > limit ? { next: order.position(scope, last) } : {}),
  }
}

/** Ascending by the sorted value, those without one last, and then by the key; descending is all of that in reverse. */
class Order<T> {
  readonly #key: Column
  readonly #alias: string
  readonly #dialect: SqlDialect
  readonly #descending: boolean
  /** `exact` where letter case counts. */
  readonly #sorted: { readonly folded: Sql; readonly exact: Sql | undefined } | undefined

  constructor({ key, alias, fields }: SearchSpace<T>, sort: SortOrder | undefined, dialect: SqlDialect) {
    this.#key = key
    this.#alias = alias
    this.#dialect = dialect
    this.#descending = sort?.descending ?? false
    if (sort === undefined) return
    const text = firstText(fields.get(sort.attribute.toLowerCase()), dialect)
    const binary = dialect === 'postgres' ? sql`(${text} collate "C")` : sql`(${text} collate binary)`
    const exact = sort.caseExact ? sql`substr(${binary}, 1, ${sql.lit(sortLength)})` : undefined
    this.#sorted = { folded: sql`substr(lower(${binary}), 1, ${sql.lit(sortLength)})`, exact }
  }

  get #keyColumn(): Sql {
    return columnOf(this.#alias, this.#key)
  }

  /** What a position is made of. */
  get columns(): Sql {
    const key = sql`${textIn(this.#alias, this.#key, this.#dialect)} as sort_key`
    const { folded, exact } = this.#sorted ?? {}
    return sql.join([
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
    return sql.join(parts.map((part) => sql`${part}${direction}`))
  }

  behind(scope: PageScope, after: string): Sql {
    const { entry, folded, exact = '' } = readPosition(scope, after)
    const key = canonical(this.#key, entry)
    if (key === undefined) throw unknownPosition()
    const past = this.#descending ? sql`<` : sql`>`
    const pastKey = sql`${this.#keyColumn} ${past} ${encode(this.#key, key, this.#dialect)}`
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

/** The first value of an attribute; null when it has none, or no place. */
function firstText(field: SearchField | undefined, dialect: SqlDialect): Sql {
  if (field === undefined) return sql`cast(null as text)`
  if ('time' in field) return field.time.text
  if ('column' in field) return textIn(field.alias, field.column, dialect)
  const { table, user, value, position } = field.values
  const text = textIn('s', value, dialect)
  return sql`(select ${text} from ${tableId(table)} as s where ${columnOf('s', user)} = ${field.owner} and ${columnOf('s', value)} is not null order by ${position === undefined ? text : columnOf('s', position)} limit 1)`
}
