import type { RawBuilder } from 'kysely'
import type { Filter } from '#identity/filter/ast.ts'
import type { Truth } from '#identity/filter/truth.ts'
import { compareSortKeys } from '#identity/sort-key.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import type { SqlReader } from '#storage/client/sql-client.ts'
import { assertStorable } from '#storage/client/text-keys.ts'
import { restriction, smallestChoice } from '#storage/sql/entry-selection.ts'
import { indexChoices, maxCounted, type SearchSpace, truthCondition } from '#storage/sql/filter-to-sql.ts'
import { builderFor, dynamic } from '#storage/sql/queries.ts'
import {
  countWithValue,
  isOwnOrder,
  keysWithoutValue,
  keysWithValue,
  type PlacedKey,
  type PlacedRow,
  placedKeys,
  type Sorting,
  timeKey,
  windowEnd,
} from '#storage/sql/sorted-keys.ts'

export interface SortedSlice {
  readonly after: PlacedKey | undefined
  readonly offset: number
  readonly limit: number
}

export interface SortedKeys {
  readonly keys: readonly PlacedKey[]
  /** How many match in all, where that became known on the way. */
  readonly total: number | undefined
}

/**
 * The keys of a sorted search. Where a filter finds few entries, they are sorted here; else they are met in the order
 * of an index, and tested on the way.
 */
export async function searchSorted(
  reader: SqlReader,
  space: SearchSpace,
  filter: Filter | undefined,
  order: SortOrder,
  slice: SortedSlice,
): Promise<SortedKeys> {
  assertStorable('attribute to sort by', order.attribute)
  const truth = restriction(filter)
  if (truth === undefined) return walk(reader, { space, order, condition: undefined }, slice)
  const few = await sortFew(reader, space, truth, order, slice)
  return few ?? walk(reader, { space, order, condition: truthCondition(truth, space) }, slice)
}

async function sortFew(
  reader: SqlReader,
  space: SearchSpace,
  truth: Truth,
  order: SortOrder,
  { after, offset, limit }: SortedSlice,
): Promise<SortedKeys | undefined> {
  const best = await smallestChoice(reader, indexChoices(truth, space))
  if (best === undefined || best.size >= maxCounted) return undefined
  const condition = best.choice.exact ? undefined : truthCondition(truth, space)
  const found = await ask(reader, placedKeys({ space, order, condition }, best.choice))
  const sign = order.descending ? -1 : 1
  const compare = (a: PlacedKey, b: PlacedKey) => sign * (compareSortKeys(a, b) || a.pk - b.pk)
  const sorted = found.map(toPlaced).sort(compare)
  const behind = after === undefined ? sorted : sorted.filter((key) => compare(key, after) > 0)
  return { keys: behind.slice(offset, offset + limit), total: sorted.length }
}

/** Those with a value come first, in descending order last. */
async function walk(reader: SqlReader, sorting: Sorting, slice: SortedSlice): Promise<SortedKeys> {
  const { after, limit } = slice
  const { descending } = sorting.order
  const parts = isOwnOrder(sorting) ? [withValue] : descending ? [withoutValue, withValue] : [withValue, withoutValue]
  // The part in which the page before has ended is gone on with; the one before it is done.
  const begun = after !== undefined && parts.length > 1 && (after.folded === undefined) !== descending ? 1 : 0
  const keys: PlacedKey[] = []
  let offset = slice.offset
  for (const [i, part] of parts.slice(begun).entries()) {
    if (keys.length >= limit) break
    const found = await part(reader, sorting, {
      after: i === 0 ? after : undefined,
      offset,
      limit: limit - keys.length,
    })
    for (const key of found.keys) keys.push(key)
    offset -= found.skipped
  }
  return { keys, total: undefined }
}

/** Keys, and how many of the offset were passed over to reach them. */
interface Part {
  readonly keys: readonly PlacedKey[]
  readonly skipped: number
}

async function withValue(reader: SqlReader, sorting: Sorting, { after, offset, limit }: SortedSlice): Promise<Part> {
  const rows = await ask(reader, keysWithValue(sorting, after, limit, offset))
  if (rows.length > 0 || offset === 0) return { keys: rows.map(toPlaced), skipped: offset }
  // An offset beyond the last of them.
  const [all] = after === undefined ? await ask(reader, countWithValue(sorting)) : []
  return { keys: [], skipped: all?.total ?? (await ask(reader, keysWithValue(sorting, after, offset, 0))).length }
}

async function withoutValue(reader: SqlReader, sorting: Sorting, { after, offset, limit }: SortedSlice): Promise<Part> {
  const keys: PlacedKey[] = []
  let skipped = 0
  let from = after?.pk
  for (;;) {
    const rows = await ask(reader, keysWithoutValue(sorting, from, offset - skipped + limit - keys.length))
    const passed = Math.min(rows.length, offset - skipped)
    skipped += passed
    for (const { pk } of rows.slice(passed)) keys.push({ pk, folded: undefined, exact: '' })
    if (keys.length >= limit) return { keys, skipped }
    const [end] = await ask(reader, windowEnd(sorting, from))
    if (end === undefined || end.last === null) return { keys, skipped }
    from = end.last
  }
}

const ask = <R>(reader: SqlReader, query: RawBuilder<R>): Promise<R[]> =>
  reader.query(dynamic({ compile: () => query.compile(builderFor(reader.dialect)) }))

const toPlaced = ({ pk, folded, exact }: PlacedRow): PlacedKey => ({
  pk,
  folded: typeof folded === 'number' ? timeKey(folded) : (folded ?? undefined),
  exact: exact ?? '',
})
