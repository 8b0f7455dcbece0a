import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { exactLength, type SortKey } from '#identity/sort-key.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import { count, type IndexedKeys, nameKey, ownValue, type SearchSpace, timeColumn } from '#storage/sql/filter-to-sql.ts'

type Condition = RawBuilder<SqlBool>

/** Where an entry stands in a sorted search. */
export interface PlacedKey extends SortKey {
  readonly pk: number
}

/** As the database gives it. */
export interface PlacedRow {
  readonly pk: number
  /** A number where entries are sorted by one of their times. */
  readonly folded: string | number | null
  readonly exact: string | null
}

/** A time as a text that sorts as the time does. */
export const timeKey = (millis: number): string => String(Math.max(0, millis)).padStart(15, '0')

/** What is sorted: a collection, or the part of it that a condition on `e` holds of. */
export interface Sorting {
  readonly space: SearchSpace
  readonly order: SortOrder
  readonly condition: Condition | undefined
}

/** Every entry has a value: its own name or id, or one of its times. */
export const isOwnOrder = ({ space, order }: Pick<Sorting, 'space' | 'order'>): boolean =>
  ownValue(order.attribute, space) !== undefined || timeColumn(order.attribute) !== undefined

/** Those with a value behind `after`, in order. An index has them in that order, so that any page is found at once. */
export function keysWithValue(
  sorting: Sorting,
  after: PlacedKey | undefined,
  limit: number,
  offset: number,
): RawBuilder<PlacedRow> {
  const { select, columns } = isOwnOrder(sorting) ? ownKeys(sorting) : attributeKeys(sorting)
  const { descending } = sorting.order
  const behind =
    after === undefined
      ? sql``
      : sql` and (${sql.join(columns.map(({ column }) => column))}) ${descending ? sql`<` : sql`>`} (${sql.join(
          columns.map(({ of }) => of(after)),
        )})`
  const by = sql.join(columns.map(({ column }) => (descending ? sql`${column} desc` : column)))
  return sql`${select}${behind} order by ${by} limit ${count(sql`${limit}`)} offset ${count(sql`${offset}`)}`
}

/** How many have a value. */
export function countWithValue(sorting: Sorting): RawBuilder<{ total: number }> {
  const { select } = isOwnOrder(sorting) ? ownKeys(sorting) : attributeKeys(sorting)
  return sql`select count(*) as total from (${select}) as keys`
}

/** Entries that are looked through at once for those without a value; an index knows only those that have one. */
const windowSize = 2000

/** Those without a value among the entries that follow the key `from`. */
export function keysWithoutValue(
  sorting: Sorting,
  from: number | undefined,
  limit: number,
): RawBuilder<{ pk: number }> {
  const { order, condition } = sorting
  const valued = sql`select 1 from attributes as s where s.entry = e.pk and s.name_key = ${nameKey(order.attribute)}`
  return sql`select e.pk as pk from (${keyWindow(sorting, from)}) as w cross join entries as e where e.pk = w.pk and not exists (${valued})${andCondition(condition)} order by e.pk${direction(order)} limit ${count(sql`${limit}`)}`
}

/** The last of the entries that were looked through; null when there are no others. */
export function windowEnd(sorting: Sorting, from: number | undefined): RawBuilder<{ last: number | null }> {
  const last = sorting.order.descending ? sql`min(pk)` : sql`max(pk)`
  return sql`select case when count(*) < ${sql.lit(windowSize)} then null else ${last} end as last from (${keyWindow(sorting, from)}) as w`
}

function keyWindow({ space, order }: Sorting, from: number | undefined): RawBuilder<unknown> {
  const behind = from === undefined ? sql`` : sql` and pk ${order.descending ? sql`<` : sql`>`} ${from}`
  return sql`select pk from entries where collection = ${space.collection}${behind} order by pk${direction(order)} limit ${sql.lit(windowSize)}`
}

/** All that an index finds and the condition holds of, in any order. */
export function placedKeys(sorting: Sorting, indexed: IndexedKeys): RawBuilder<PlacedRow> {
  const { space, order, condition } = sorting
  const own = timeColumn(order.attribute) ?? ownValue(order.attribute, space)?.key
  const where = sql`where e.pk in (${indexed.keys})${andCondition(condition)}`
  if (own !== undefined) return sql`select e.pk as pk, ${own} as folded, '' as exact from entries as e ${where}`
  return sql`select e.pk as pk, s.value_key as folded, ${exactColumn(order)} as exact from entries as e left join attributes as s on s.entry = e.pk and s.name_key = ${nameKey(order.attribute)} and s.position = 0 ${where}`
}

interface OrderedKeys {
  readonly select: RawBuilder<PlacedRow>
  /** What the order is made of, and how an entry's place is compared with it. */
  readonly columns: readonly { readonly column: RawBuilder<unknown>; of(key: PlacedKey): RawBuilder<unknown> }[]
}

function ownKeys({ space, order, condition }: Sorting): OrderedKeys {
  const time = timeColumn(order.attribute)
  if (time !== undefined) {
    return {
      select: sql`select e.pk as pk, ${time} as folded, '' as exact from entries as e where e.collection = ${space.collection}${andCondition(condition)}`,
      columns: [
        { column: time, of: ({ folded }) => sql`${Number(folded)}` },
        { column: sql`e.pk`, of: ({ pk }) => sql`${pk}` },
      ],
    }
  }
  const own = ownValue(order.attribute, space)
  const column = own?.key ?? sql`e.key`
  // Ids are unique in the whole table, and their index does not know collections: the sign keeps planners off others.
  const collection = own?.number === undefined ? sql`+e.collection` : sql`e.collection`
  return {
    select: sql`select e.pk as pk, ${column} as folded, '' as exact from entries as e where ${collection} = ${space.collection}${andCondition(condition)}`,
    columns: [{ column, of: ({ folded }) => sql`${folded ?? ''}` }],
  }
}

function attributeKeys({ space, order, condition }: Sorting): OrderedKeys {
  const exact = exactColumn(order)
  const entry = condition === undefined ? sql`` : sql` cross join entries as e`
  const tested = condition === undefined ? sql`` : sql` and e.pk = s.entry and ${condition}`
  return {
    select: sql`select s.entry as pk, s.value_key as folded, ${exact} as exact from attributes as s${entry} where s.collection = ${space.collection} and s.name_key = ${nameKey(order.attribute)} and s.position = 0${tested}`,
    columns: [
      { column: sql`s.value_key`, of: ({ folded }) => sql`${folded ?? ''}` },
      ...(order.caseExact ? [{ column: exact, of: (key: PlacedKey) => sql`${key.exact}` }] : []),
      { column: sql`s.entry`, of: ({ pk }) => sql`${pk}` },
    ],
  }
}

const exactColumn = ({ caseExact }: SortOrder): RawBuilder<unknown> =>
  caseExact ? sql`substr(s.value, 1, ${sql.lit(exactLength)})` : sql`''`

const andCondition = (condition: Condition | undefined): RawBuilder<unknown> =>
  condition === undefined ? sql`` : sql` and ${condition}`

const direction = ({ descending }: SortOrder): RawBuilder<unknown> => (descending ? sql` desc` : sql``)
