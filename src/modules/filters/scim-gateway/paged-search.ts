import type { TimeAttribute } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { SortOrder } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { evaluateFilter, isNever } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { expiredCursor, invalidCursor } from '#protocols/scim/lists.ts'
import { resourceTypeOf, type ScimResource } from '#protocols/scim/resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { type Sort, sortResources } from '#protocols/scim/sort.ts'
import type { SearchPage } from '#sdk/target.ts'
import { heldAt, type NameOf, type Translation, translateFilter } from './filter-translation.ts'
import type { Extent, ListRequest, ResourcePage } from './list-request.ts'
import { lookupWidth, type Query } from './lookups.ts'

/** How many candidates are read where a filter or an order cannot be left to the store. */
export const maxCandidates = 10_000
const chunk = 1000

export interface Search<T> {
  /** `byPosition`: the page's `next` is handed to the client. */
  search(query: Query, byPosition?: boolean): Promise<SearchPage<T>>
  toResource(item: T): ScimResource | Promise<ScimResource>
}

const everything: Translation = { filter: undefined, exact: true }

/** The page as the store gives it where it understands filter and order; else candidates are read and tested here. */
export async function pagedSearch<T>(source: Search<T>, list: ListRequest, nameOf: NameOf): Promise<ResourcePage> {
  const { filter, sort, extent } = list
  if (isNever(filter)) return { resources: [], total: 0 }
  const translation = filter === undefined ? everything : translateFilter(filter, nameOf)
  const order = sort === undefined ? deltaOrder(translation, extent) : storeOrder(sort, nameOf)
  const stored = translation.filter === undefined ? {} : { filter: translation.filter }
  if (extent.kind === 'all' || !translation.exact || order === 'unknown') {
    return pageOf(await candidates(source, stored, translation.exact ? undefined : filter), list)
  }
  return storedPage(source, order === undefined ? stored : { ...stored, sort: order }, extent)
}

/**
 * A client that follows what changed since a time by cursor gets it in the order of change: each page is found in the index
 * at once, and a resource that changes meanwhile appears again rather than be missed. Numbered pages keep the order of
 * creation, in which a change moves no other resource to another page.
 */
function deltaOrder({ filter, exact }: Translation, extent: Extent): SortOrder | undefined {
  if (extent.kind !== 'cursor' || filter === undefined || !exact) return undefined
  const parts = filter.kind === 'and' ? filter.filters : [filter]
  const attribute: TimeAttribute = 'meta.lastModified'
  const isDelta = parts.some(
    (part) => (part.kind === 'greater' || part.kind === 'greaterOrEqual') && part.attribute === attribute,
  )
  return isDelta ? { attribute, descending: false, caseExact: false } : undefined
}

/** Positions are told apart by their first letter: of the store's own making, a number of resources, or a resource. */
const positions = { store: 's', offset: 'o', resource: 'r' } as const

async function storedPage<T>(
  source: Search<T>,
  stored: Pick<Query, 'filter' | 'sort'>,
  extent: Exclude<Extent, { kind: 'all' }>,
): Promise<ResourcePage> {
  const { count } = extent
  const start = startOf(extent)
  // Not every store knows a page of none.
  const query = { ...stored, ...start, limit: Math.max(1, count) }
  const found = await searched(source, query, start.after !== undefined, extent.kind === 'cursor')
  const items = found.items.slice(0, count)
  const resources = await resourcesOf(source, items)
  const next = extent.kind === 'cursor' ? nextPosition(found, start) : undefined
  return { resources, total: found.total, ...(next === undefined ? {} : { next }) }
}

function startOf(extent: Exclude<Extent, { kind: 'all' }>): Pick<Query, 'offset' | 'after'> {
  if (extent.kind === 'index') return { offset: extent.offset }
  const { after } = extent
  if (after === undefined) return { offset: 0 }
  const rest = after.slice(1)
  if (after.startsWith(positions.store)) return { offset: 0, after: rest }
  if (!after.startsWith(positions.offset) || !/^\d{1,15}$/.test(rest)) throw invalidCursor()
  return { offset: Number(rest) }
}

/** A store that gives no positions is asked by offset. */
function nextPosition<T>({ items, total, next }: SearchPage<T>, start: Pick<Query, 'offset' | 'after'>) {
  if (next !== undefined) return positions.store + next
  const end = start.offset + items.length
  return start.after === undefined && items.length > 0 && end < total ? `${positions.offset}${end}` : undefined
}

/** What a store says of a search that it refuses is about the filter or a position of the client's, if not how many match. */
async function searched<T>(source: Search<T>, query: Query, isPosition: boolean, byPosition = false) {
  try {
    return await source.search(query, byPosition)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'BAD_REQUEST' || error.keyword === 'tooMany') throw error
    throw isPosition ? invalidCursor(error) : scimError('invalidFilter', error.publicText, { cause: error })
  }
}

/** A page, in order, of what is all in hand and matches. */
export function pageOf(matching: readonly ScimResource[], { sort, extent }: ListRequest): ResourcePage {
  const all = sort === undefined ? matching : sortResources(matching, sort)
  const total = all.length
  if (extent.kind === 'all') return { resources: all, total }
  const start = extent.kind === 'index' ? extent.offset : behind(all, extent.after)
  const resources = all.slice(start, start + extent.count)
  const last = resources.at(-1)
  if (extent.kind === 'index' || last === undefined || start + resources.length >= total) return { resources, total }
  return { resources, total, next: placeOf(last) }
}

/** Resources of two types may have the same id. */
const placeOf = (resource: ScimResource): string =>
  `${positions.resource}${resourceTypeOf(resource) ?? ''} ${String(resource['id'])}`

function behind(all: readonly ScimResource[], after: string | undefined): number {
  if (after === undefined) return 0
  if (!after.startsWith(positions.resource)) throw invalidCursor()
  const at = all.findIndex((resource) => placeOf(resource) === after)
  if (at < 0) throw expiredCursor()
  return at + 1
}

async function candidates<T>(
  source: Search<T>,
  stored: { readonly filter?: Filter },
  filter: ScimFilter | undefined,
): Promise<ScimResource[]> {
  const matching: ScimResource[] = []
  let place: Pick<Query, 'offset' | 'after'> = { offset: 0 }
  for (let read = 0; ; ) {
    const found: SearchPage<T> = await searched(source, { ...stored, ...place, limit: chunk }, false)
    if (found.total > maxCandidates) {
      throw scimError(
        'tooMany',
        'The target cannot evaluate this filter or order itself, and too many resources would be read. Narrow the filter.',
      )
    }
    for (const resource of await resourcesOf(source, found.items)) {
      if (filter === undefined || evaluateFilter(filter, resource)) matching.push(resource)
    }
    read += found.items.length
    if (found.items.length === 0 || read >= found.total) return matching
    place = found.next === undefined ? { offset: read } : { offset: 0, after: found.next }
  }
}

/** Those that are made at once cost no turn of the event loop; the others are made a few at a time. */
async function resourcesOf<T>(source: Search<T>, items: readonly T[]): Promise<ScimResource[]> {
  const made: ScimResource[] = []
  for (const item of items) {
    const resource = source.toResource(item)
    if (resource instanceof Promise) {
      const rest = items.slice(made.length + 1)
      made.push(await resource)
      return [...made, ...(await inParallel(rest, lookupWidth, async (one) => source.toResource(one)))]
    }
    made.push(resource)
  }
  return made
}

const textTypes: ReadonlySet<string> = new Set(['string', 'reference', 'boolean'])

/**
 * The same order as a store keeps it: undefined where no resource has the attribute, `unknown` where stores do not agree
 * on the order (numbers, dates), or which of several values counts.
 */
function storeOrder({ path, descending }: Sort, nameOf: NameOf): SortOrder | 'unknown' | undefined {
  const { attribute: owner, sub } = path
  const leaf = sub ?? owner
  const held = heldAt(path, nameOf)
  if (held?.names.length === 0) return undefined
  if (held === undefined || held.inside === true) return 'unknown'
  const [attribute, second] = held.names
  if (attribute !== undefined && held.isTime === true) return { attribute, descending, caseExact: false }
  const ownName = sub === undefined && (owner.name === 'userName' || owner.name === 'id')
  if (attribute === undefined || (second !== undefined && !ownName)) return 'unknown'
  if ((owner.multiValued && held.primaryFirst !== true) || leaf.multiValued || !textTypes.has(leaf.type))
    return 'unknown'
  return { attribute, descending, caseExact: leaf.caseExact }
}
