import { createHash } from 'node:crypto'
import type { AttributeSource } from '#identity/attributes.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { type PageScope, readPosition, writePosition } from '#identity/page-position.ts'
import { compareSortKeys, keyLength, type SortKey, sortKey } from '#identity/sort-key.ts'
import type { Page, UserSearch } from '#identity/user-directory.ts'

/** How a collection in memory is read. */
export interface Collection<T> {
  /** In any words that tell it from others. */
  readonly of: string
  source(item: T): AttributeSource
  /** Unique; what the order is made of where nothing else decides. */
  key(item: T): string
}

interface Placed {
  readonly sort: SortKey
  readonly key: string
}

/** The items that match, in order; what pages are cut from. */
export interface Ordered<T> {
  readonly scope: PageScope
  readonly all: readonly (Placed & { readonly item: T })[]
}

/** The page that is asked for, the order of the items' keys taken for that of their creation. */
export function pageInMemory<T>(items: readonly T[], search: UserSearch, collection: Collection<T>): Page<T> {
  return pageOf(orderInMemory(items, search, collection), search)
}

export function orderInMemory<T>(
  items: readonly T[],
  { filter, sort }: Pick<UserSearch, 'filter' | 'sort'>,
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

export function pageOf<T>({ scope, all }: Ordered<T>, search: Omit<UserSearch, 'filter' | 'sort'>): Page<T> {
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

/** As unique, and short enough to stand in a position, whatever the length of the key. */
function boundedKey(key: string): string {
  if (key.length <= keyLength) return key
  return `${key.slice(0, keyLength)}${createHash('sha256').update(JSON.stringify(key)).digest('base64url')}`
}

const compareKeys = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
