import { createHash } from 'node:crypto'
import type { Filter } from '#identity/filter/ast.ts'
import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { printFilter } from '#identity/filter/filter-text.ts'
import type { SearchPage, SearchQuery, SortOrder } from '#identity/search.ts'
import { GatewayError } from '#kernel/errors.ts'
import { compareCodePoints, foldValue } from '#kernel/text/compare-texts.ts'

/** How a collection in memory is paged. */
export interface Collection<T> {
  /** Identifies the collection; any text that is different for others. */
  readonly of: string
  source(item: T): AttributeSource
  /** Unique. The order of entries that are otherwise equal. */
  key(item: T): string
}

interface Placed {
  readonly sort: SortKey
  readonly key: string
}

/** The matching items, in order. */
export interface Ordered<T> {
  readonly scope: PageScope
  readonly all: readonly (Placed & { readonly item: T })[]
}

/** Returns a page. The order of the items' keys counts as the order of creation. */
export function pageInMemory<T>(items: readonly T[], search: SearchQuery, collection: Collection<T>): SearchPage<T> {
  return pageOf(orderInMemory(items, search, collection), search)
}

export function orderInMemory<T>(
  items: readonly T[],
  { filter, sort }: Pick<SearchQuery, 'filter' | 'sort'>,
  collection: Collection<T>,
): Ordered<T> {
  const scope: PageScope = { of: collection.of, filter, sort }
  const placed = new Map<string, Placed & { readonly item: T }>()
  for (const item of items) {
    const source = collection.source(item)
    if (filter !== undefined && !matches(filter, source)) continue
    const value = sort === undefined ? undefined : source.values(sort.attribute)[0]
    const key = boundedKey(collection.key(item))
    placed.set(key, { item, key, sort: sortKey(value, sort?.caseExact ?? false) })
  }
  return { scope, all: [...placed.values()].sort(comparison(scope)) }
}

export function pageOf<T>({ scope, all }: Ordered<T>, search: Omit<SearchQuery, 'filter' | 'sort'>): SearchPage<T> {
  const { offset, limit, after } = search
  const from = after === undefined ? 0 : firstBehind(all, positionOf(scope, after), comparison(scope))
  const page = all.slice(from + offset, from + offset + limit)
  const last = page.at(-1)
  const more = last !== undefined && from + offset + limit < all.length
  return {
    items: page.map(({ item }) => item),
    total: all.length,
    ...(more ? { next: writePosition(scope, { entry: last.key, ...last.sort }) } : {}),
  }
}

function comparison({ sort }: PageScope): (a: Placed, b: Placed) => number {
  const sign = sort?.descending ? -1 : 1
  return (a, b) => sign * (compareSortKeys(a.sort, b.sort) || compareKeys(a.key, b.key))
}

function positionOf(scope: PageScope, after: string): Placed {
  const { entry, folded, exact = '' } = readPosition(scope, after)
  return { key: entry, sort: { folded, exact } }
}

function firstBehind(all: readonly Placed[], after: Placed, compare: (a: Placed, b: Placed) => number): number {
  const found = all.findIndex((candidate) => compare(candidate, after) > 0)
  return found < 0 ? all.length : found
}

/** Also unique, and short enough for a position. */
function boundedKey(key: string): string {
  if (key.length <= keyLength) return key
  return `${key.slice(0, keyLength)}${createHash('sha256').update(JSON.stringify(key)).digest('base64url')}`
}

const compareKeys = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The key by which a value is sorted. */
export interface SortKey {
  /** Undefined for an entry without a value. */
  readonly folded: string | undefined
  /** Empty where letter case does not count. */
  readonly exact: string
}

/** How many UTF-16 units of a folded value count. */
export const keyLength = 200

/** How many code points of the value itself count where letter case does. */
export const exactLength = 200

/** A folded text for comparison: the whole text, or the start of a long one, which is longer than any whole text. */
export function cutKey(folded: string): string {
  if (folded.length <= keyLength) return folded
  const unit = folded.charCodeAt(keyLength)
  return folded.slice(0, keyLength + (unit >= 0xd800 && unit <= 0xdbff ? 2 : 1))
}

export function sortKey(value: string | undefined, caseExact: boolean): SortKey {
  if (value === undefined) return { folded: undefined, exact: '' }
  return { folded: cutKey(foldValue(value, false)), exact: caseExact ? exactKey(value) : '' }
}

const exactKey = (value: string): string =>
  value.length <= exactLength
    ? value
    : Array.from(value.slice(0, 2 * exactLength))
        .slice(0, exactLength)
        .join('')

/** Ascending. Zero if only the keys of the entries decide. */
export function compareSortKeys(a: SortKey, b: SortKey): number {
  if (a.folded === undefined || b.folded === undefined) {
    return Number(a.folded === undefined) - Number(b.folded === undefined)
  }
  return compareCodePoints(a.folded, b.folded) || compareCodePoints(a.exact, b.exact)
}

/** A search. A position is valid only for the search that returned it. */
export interface PageScope {
  /** Identifies the collection; any text that is different for others. */
  readonly of: string
  readonly filter: Filter | undefined
  readonly sort: SortOrder | undefined
}

/**
 * The position of the last entry of a page. It has all values of the order, so that it works even after the entry
 * is deleted.
 */
interface PagePosition {
  /** The entry's own key. */
  readonly entry: string
  /** The value that the search sorts by; undefined without a value or without sorting. */
  readonly folded?: string | undefined
  readonly exact?: string | undefined
  /** How many entries the first page counted, if counting them again would cost too much. */
  readonly total?: number | undefined
}

/** Longer than any valid position. */
const maxLength = 8192

/** The position as a text that is safe in a URL. */
export function writePosition(scope: PageScope, { entry, folded, exact, total }: PagePosition): string {
  return Buffer.from(JSON.stringify([digest(scope), entry, folded ?? null, exact ?? null, total ?? null])).toString(
    'base64url',
  )
}

/** Throws BAD_REQUEST when the text is not a position of this search. */
export function readPosition(scope: PageScope, text: string): PagePosition {
  const parts = parse(text)
  if (parts.length !== 5 || parts[0] !== digest(scope)) throw unknownPosition()
  const [, entry, folded, exact, total] = parts
  if (!isText(entry) || !isTextOrNull(folded) || !isTextOrNull(exact)) throw unknownPosition()
  if (total !== null && !(Number.isSafeInteger(total) && Number(total) >= 0)) throw unknownPosition()
  return {
    entry,
    folded: folded ?? undefined,
    exact: exact ?? undefined,
    total: total === null ? undefined : Number(total),
  }
}

export function unknownPosition(cause?: unknown): GatewayError {
  return new GatewayError('BAD_REQUEST', 'the page position does not belong to this search', {
    cause,
    publicText: 'The page cursor does not belong to this search. Start again with the first page.',
    keyword: 'invalidCursor',
  })
}

function parse(text: string): readonly unknown[] {
  if (text.length > maxLength || !/^[\w-]+$/.test(text)) throw unknownPosition()
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(value) ? value : []
  } catch (cause) {
    throw unknownPosition(cause)
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value)

function digest({ of, filter, sort }: PageScope): string {
  const order = sort === undefined ? null : [foldValue(sort.attribute, false), sort.descending, sort.caseExact]
  const text = JSON.stringify([of, filter === undefined ? null : printFilter(filter), order])
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}
