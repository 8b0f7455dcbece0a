import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { DatabaseReader } from '#database/sql-client.ts'
import { dynamic } from '#database/statement.ts'
import { assertStorable } from '#database/text-keys.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Truth } from '#identity/filter/rewrite-filter.ts'
import { compareSortKeys, exactLength, type SortKey } from '#identity/paging.ts'
import type { SortOrder } from '#identity/search.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import {
  and,
  count,
  nameKey,
  ownValue,
  restriction,
  type SearchSpace,
  timeColumn,
  truthCondition,
} from './filter-to-sql.ts'
import { type IndexedKeys, indexChoices, maxCounted, smallestChoice } from './index-choice.ts'

/** The position of an entry in a sorted search. */
export interface EntryPosition extends SortKey {
  readonly pk: number
}

interface SearchSlice {
  readonly after: EntryPosition | undefined
  readonly offset: number
  readonly limit: number
}

interface SortedPositions {
  readonly positions: readonly EntryPosition[]
  /** How many entries match in total, if the search counted them. */
  readonly total: number | undefined
}

/** A collection to sort, or the part of it for which a condition on `e` is true. */
interface Sorting {
  readonly space: SearchSpace
  readonly order: SortOrder
  readonly condition: Sql | undefined
}

/**
 * If a filter finds few entries, they are sorted here. Otherwise entries are read in the order of an index, and
 * tested on the way.
 */
export async function searchSorted(
  reader: DatabaseReader,
  space: SearchSpace,
  filter: Filter | undefined,
  order: SortOrder,
  slice: SearchSlice,
): Promise<SortedPositions> {
  assertStorable('attribute to sort by', order.attribute)
  const truth = restriction(filter)
  if (truth === undefined) return walk(reader, { space, order, condition: undefined }, slice)
  const few = await sortFew(reader, space, truth, order, slice)
  return few ?? walk(reader, { space, order, condition: truthCondition(truth, space) }, slice)
}

async function sortFew(
  reader: DatabaseReader,
  space: SearchSpace,
  truth: Truth,
  order: SortOrder,
  { after, offset, limit }: SearchSlice,
): Promise<SortedPositions | undefined> {
  const best = await smallestChoice(reader, indexChoices(truth, space))
  if (best === undefined || best.size >= maxCounted) return undefined
  const condition = best.choice.exact ? undefined : truthCondition(truth, space)
  const found = await query<PositionRow>(reader, indexedPositions({ space, order, condition }, best.choice))
  const sign = order.descending ? -1 : 1
  const compare = (a: EntryPosition, b: EntryPosition) => sign * (compareSortKeys(a, b) || a.pk - b.pk)
  const sorted = found.map(toPosition).sort(compare)
  const behind = after === undefined ? sorted : sorted.filter((position) => compare(position, after) > 0)
  return { positions: behind.slice(offset, offset + limit), total: sorted.length }
}

/** Entries with a value come first, and last in descending order. */
async function walk(reader: DatabaseReader, sorting: Sorting, slice: SearchSlice): Promise<SortedPositions> {
  const { after, limit } = slice
  const { descending } = sorting.order
  const parts = isOwnOrder(sorting) ? [withValue] : descending ? [withoutValue, withValue] : [withValue, withoutValue]
  // Continue in the part in which the previous page ended.
  const begun = after !== undefined && parts.length > 1 && (after.folded === undefined) !== descending ? 1 : 0
  const positions: EntryPosition[] = []
  let offset = slice.offset
  for (const [i, part] of parts.slice(begun).entries()) {
    if (positions.length >= limit) break
    const found = await part(reader, sorting, {
      after: i === 0 ? after : undefined,
      offset,
      limit: limit - positions.length,
    })
    for (const position of found.positions) positions.push(position)
    offset -= found.skipped
  }
  return { positions, total: undefined }
}

interface Part {
  readonly positions: readonly EntryPosition[]
  /** How many entries of the offset were skipped to reach them. */
  readonly skipped: number
}

async function withValue(
  reader: DatabaseReader,
  sorting: Sorting,
  { after, offset, limit }: SearchSlice,
): Promise<Part> {
  const select = (size: number, from: number) =>
    query<PositionRow>(reader, positionsWithValue(sorting, after, size, from))
  const rows = await select(limit, offset)
  if (rows.length > 0 || offset === 0) return { positions: rows.map(toPosition), skipped: offset }
  // The offset is beyond the last of them.
  const [all] = after === undefined ? await query<{ total: number }>(reader, countWithValue(sorting)) : []
  return { positions: [], skipped: all?.total ?? (await select(offset, 0)).length }
}

async function withoutValue(
  reader: DatabaseReader,
  sorting: Sorting,
  { after, offset, limit }: SearchSlice,
): Promise<Part> {
  const positions: EntryPosition[] = []
  let skipped = 0
  let from = after?.pk
  for (;;) {
    const wanted = offset - skipped + limit - positions.length
    const rows = await query<{ pk: number }>(reader, keysWithoutValue(sorting, from, wanted))
    const passed = Math.min(rows.length, offset - skipped)
    skipped += passed
    for (const { pk } of rows.slice(passed)) positions.push({ pk, folded: undefined, exact: '' })
    if (positions.length >= limit) return { positions, skipped }
    const [end] = await query<{ last: number | null }>(reader, windowEnd(sorting, from))
    if (end === undefined || end.last === null) return { positions, skipped }
    from = end.last
  }
}

const query = <R>(reader: DatabaseReader, composed: Sql): Awaitable<R[]> =>
  reader.query(dynamic<R>(reader.dialect, composed))

interface PositionRow {
  readonly pk: number
  /** A number where entries are sorted by one of their times. */
  readonly folded: string | number | null
  readonly exact: string | null
}

const toPosition = ({ pk, folded, exact }: PositionRow): EntryPosition => ({
  pk,
  folded: typeof folded === 'number' ? timeKey(folded) : (folded ?? undefined),
  exact: exact ?? '',
})

/** A time as a text that sorts as the time does. */
const timeKey = (millis: number): string => String(Math.max(0, millis)).padStart(15, '0')

/** Every entry has a value: its own name or id, or one of its times. */
const isOwnOrder = ({ space, order }: Sorting): boolean =>
  ownValue(order.attribute, space) !== undefined || timeColumn(order.attribute) !== undefined

/** Entries with a value after `after`, in order. An index has them in that order, so any page is found at once. */
function positionsWithValue(sorting: Sorting, after: EntryPosition | undefined, limit: number, offset: number): Sql {
  const { select, columns } = isOwnOrder(sorting) ? ownPositions(sorting) : attributePositions(sorting)
  const { descending } = sorting.order
  const names = columns.map(({ column }) => column)
  const by = join(names.map((column) => (descending ? sql`${column} desc` : column)))
  const page = sql`order by ${by} limit ${count(limit)} offset ${count(offset)}`
  if (after === undefined) return sql`${select} ${page}`
  const values = columns.map(({ of }) => of(after))
  return sql`${select} and (${join(names)}) ${descending ? sql`<` : sql`>`} (${join(values)}) ${page}`
}

const countWithValue = (sorting: Sorting): Sql => {
  const { select } = isOwnOrder(sorting) ? ownPositions(sorting) : attributePositions(sorting)
  return sql`select count(*) as total from (${select}) as keys`
}

/** How many entries are searched at once for those without a value; an index has only those that have one. */
const windowSize = 2000

/** The entries without a value among those that follow the key `from`. */
function keysWithoutValue(sorting: Sorting, from: number | undefined, limit: number): Sql {
  const { order, condition } = sorting
  return sql`select e.pk as pk from (${keyWindow(sorting, from)}) as w cross join entries as e
    where e.pk = w.pk
    and not exists (select 1 from attributes as s where s.entry = e.pk and s.name_key = ${nameKey(order.attribute)})
    ${and(condition)} order by e.pk${direction(order)} limit ${count(limit)}`
}

/** The last of the entries that were searched; null when no others follow. */
const windowEnd = (sorting: Sorting, from: number | undefined): Sql =>
  sql`select case when count(*) < ${raw(`${windowSize}`)} then null
    else ${sorting.order.descending ? sql`min(pk)` : sql`max(pk)`} end as last
    from (${keyWindow(sorting, from)}) as w`

function keyWindow({ space, order }: Sorting, from: number | undefined): Sql {
  const behind = from === undefined ? empty : sql` and pk ${order.descending ? sql`<` : sql`>`} ${from}`
  return sql`select pk from entries where collection = ${space.collection}${behind}
    order by pk${direction(order)} limit ${raw(`${windowSize}`)}`
}

/** All entries that an index finds and for which the condition is true, in any order. */
function indexedPositions({ space, order, condition }: Sorting, indexed: IndexedKeys): Sql {
  const own = timeColumn(order.attribute) ?? ownValue(order.attribute, space)?.key
  const where = sql`where e.pk in (${indexed.keys})${and(condition)}`
  if (own !== undefined) return sql`select e.pk as pk, ${own} as folded, '' as exact from entries as e ${where}`
  return sql`select e.pk as pk, s.value_key as folded, ${exactColumn(order)} as exact from entries as e
    left join attributes as s on s.entry = e.pk and s.name_key = ${nameKey(order.attribute)} and s.position = 0 ${where}`
}

interface OrderedPositions {
  readonly select: Sql
  /** The columns of the order, and the value that a position has in each. */
  readonly columns: readonly { readonly column: Sql; of(position: EntryPosition): number | string }[]
}

function ownPositions({ space, order, condition }: Sorting): OrderedPositions {
  const own = ownValue(order.attribute, space)
  const time = timeColumn(order.attribute)
  const column = time ?? own?.key ?? sql`e.key`
  // Ids are unique in the whole table, and their index does not know collections: the sign keeps planners off others.
  const collection = time === undefined && own?.number === undefined ? sql`+e.collection` : sql`e.collection`
  const select = sql`select e.pk as pk, ${column} as folded, '' as exact from entries as e
    where ${collection} = ${space.collection}${and(condition)}`
  if (time === undefined) return { select, columns: [{ column, of: ({ folded }) => folded ?? '' }] }
  return {
    select,
    columns: [
      { column, of: ({ folded }) => Number(folded) },
      { column: sql`e.pk`, of: ({ pk }) => pk },
    ],
  }
}

function attributePositions({ space, order, condition }: Sorting): OrderedPositions {
  const exact = exactColumn(order)
  const entry = condition === undefined ? empty : sql` cross join entries as e`
  const tested = condition === undefined ? empty : sql` and e.pk = s.entry and ${condition}`
  return {
    select: sql`select s.entry as pk, s.value_key as folded, ${exact} as exact from attributes as s${entry}
      where s.collection = ${space.collection} and s.name_key = ${nameKey(order.attribute)} and s.position = 0${tested}`,
    columns: [
      { column: sql`s.value_key`, of: ({ folded }) => folded ?? '' },
      ...(order.caseExact ? [{ column: exact, of: (position: EntryPosition) => position.exact }] : []),
      { column: sql`s.entry`, of: ({ pk }) => pk },
    ],
  }
}

const exactColumn = ({ caseExact }: SortOrder): Sql =>
  caseExact ? sql`substr(s.value, 1, ${raw(`${exactLength}`)})` : sql`''`

const direction = ({ descending }: SortOrder): Sql => (descending ? sql` desc` : empty)
