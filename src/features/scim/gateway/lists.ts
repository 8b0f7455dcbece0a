import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { type TimeAttribute, timeAttributes } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { SearchPage, SearchQuery, SortOrder } from '#identity/search.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { evaluateFilter, isNever, settleFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { type FilterOptions, parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import {
  expiredCursor,
  invalidCursor,
  listResponse,
  parsePage,
  parseSort,
  readCursor,
  type Sort,
  sortResources,
  writeCursor,
} from '#protocols/scim/lists.ts'
import type { Projection } from '#protocols/scim/projection.ts'
import { readPath, resourceTypeOf, type ScimResource } from '#protocols/scim/schema/resource.ts'
import { type AttributePath, internalName, isCore, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import { groupSchema } from '#protocols/scim/schema/standard-schemas.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { locate, locateTime, type NameOf, type Translation, translateFilter } from './filter-translation.ts'
import { lookupWidth } from './lookups.ts'
import { answer, type Handler, projectionOf, type ScimCall } from './scim-call.ts'
import type { Searchable } from './stored-schema.ts'

interface IndexExtent {
  readonly kind: 'index'
  readonly offset: number
  readonly count: number
}

interface CursorExtent {
  readonly kind: 'cursor'
  /** A position from an earlier page; undefined for the first page. */
  readonly after: string | undefined
  readonly count: number
}

type PageExtent = IndexExtent | CursorExtent

/** The requested part of the matches; `all` is limited by `maxCandidates`. */
type Extent = PageExtent | { readonly kind: 'all' }

/** A parsed list request, from GET or `.search`, of one type or of all. */
export interface ListRequest {
  /** The listed type; a cursor of one list is not valid in another. */
  readonly name: string
  /** Undefined if unrestricted. */
  readonly filter: ScimFilter | undefined
  readonly sort: Sort | undefined
  readonly extent: Extent
  /** Undefined for the default of the schema. */
  readonly projection: Projection | undefined
  /** A part of a list of several types, in which an attribute may have values in one of them only. */
  readonly amongTypes?: boolean
}

export interface ResourcePage {
  readonly resources: readonly ScimResource[]
  /** The number of all matches. */
  readonly total: number
  /** The position after this page, if the list is paged by cursor and there are more. */
  readonly next?: string | undefined
}

/** Throws invalidFilter, invalidValue, invalidCount or invalidCursor. */
export function parseListRequest(call: ScimCall, schema: ResourceSchema, options: FilterOptions): ListRequest {
  const { name } = schema.core
  return {
    name,
    filter: parseTypeFilter(call, schema, options),
    sort: parseOrder(call, schema),
    extent: parseExtent(call, name),
    projection: projectionOf(call, schema),
  }
}

/**
 * The filter as it applies to resources of one type. `known` also has the names of other types, whose attributes have no
 * value here (RFC 7644 3.4.2.1).
 */
function parseTypeFilter(
  { query }: ScimCall,
  schema: ResourceSchema,
  { strict = false, aliases }: FilterOptions,
  known: ResourceSchema = schema,
): ScimFilter | undefined {
  const text = query.get('filter')
  if (text === null) return undefined
  const own = new Set<string | undefined>([undefined, ...schema.extensions.map(({ id }) => id)])
  return settleFilter(
    // In a list of several types, no type is the one whose names need no URN.
    parseFilter(text, known, {
      strict,
      unqualified: !strict || known !== schema,
      aliases,
    }),
    ({ attribute, extension }, sub) => !own.has(extension) || (attribute.name === 'meta' && sub === 'resourceType'),
    { meta: { resourceType: schema.core.name } },
  )
}

/** Groups can have many members, which are not read to find groups, so lists cannot be sorted by them. */
function parseOrder({ query }: ScimCall, schema: ResourceSchema): Sort | undefined {
  const sort = parseSort(query, schema)
  const isOfGroups = schema.core.id === groupSchema.id
  if (sort === undefined || !isOfGroups || !isCore(sort.path, 'members')) return sort
  throw scimError('invalidValue', 'sortBy: groups cannot be sorted by members. Sort by another attribute.')
}

function parseExtent(call: ScimCall, name: string): PageExtent {
  const page = parsePage(call.query)
  if (page.kind === 'index') return { kind: 'index', offset: page.startIndex - 1, count: page.count }
  const after = page.cursor === '' ? undefined : readCursor(scopeOf(call, name), page.cursor)
  return { kind: 'cursor', after, count: page.count }
}

export function listAnswer(call: ScimCall, list: ListRequest, page: ResourcePage): GatewayResponse {
  const { name, extent, projection } = list
  const { resources, total, next } = page
  const place =
    extent.kind === 'cursor'
      ? { nextCursor: next === undefined ? undefined : writeCursor(scopeOf(call, name), next) }
      : { startIndex: extent.kind === 'index' ? extent.offset + 1 : 1 }
  const shown = projection === undefined ? resources : resources.map(projection.apply)
  return answer(200, listResponse(shown, total, place))
}

const scopeOf = ({ exchange, query }: ScimCall, name: string): readonly string[] => [
  exchange.application,
  exchange.mount,
  name,
  query.get('filter') ?? '',
  query.get('sortBy') ?? '',
  query.get('sortOrder') ?? '',
]

/** The most candidates that are read if the store cannot evaluate a filter or an order. */
export const maxCandidates = 10_000
const chunk = 1000

export interface Search<T> {
  /** `byPosition`: the client gets the `next` of the page. */
  search(query: SearchQuery, byPosition?: boolean): Promise<SearchPage<T>>
  toResource(item: T): Awaitable<ScimResource>
}

const everything: Translation = { filter: undefined, exact: true }

/** Throws invalidFilter or invalidValue if the filter or the order is about an attribute that no resource can have. */
export function requireSearchable({ filter, sort, amongTypes }: ListRequest, { whyNone }: Searchable): void {
  if (amongTypes === true) return
  for (const leaf of filter === undefined ? [] : leavesOf(filter)) {
    const reason = whyNone(pathOf(leaf))
    if (reason !== undefined) throw scimError('invalidFilter', reason)
  }
  const reason = sort === undefined ? undefined : whyNone(sort.path)
  if (reason !== undefined) throw scimError('invalidValue', `sortBy: ${reason}`)
}

type Leaf = ScimFilter & { readonly kind: 'present' | 'compare' | 'element' }

function leavesOf(filter: ScimFilter): readonly Leaf[] {
  if ('filters' in filter) return filter.filters.flatMap(leavesOf)
  return filter.kind === 'not' ? leavesOf(filter.filter) : [filter]
}

const pathOf = (leaf: Leaf): AttributePath => (leaf.kind === 'element' ? leaf.of : leaf.path)

/** The page comes from the store if it can evaluate filter and order; otherwise candidates are read and tested here. */
export async function pagedSearch<T>(source: Search<T>, list: ListRequest, nameOf: NameOf): Promise<ResourcePage> {
  const { filter, sort, extent } = list
  if (isNever(filter)) return { resources: [], total: 0 }
  const translation = filter === undefined ? everything : translateFilter(filter, nameOf)
  const order = sort === undefined ? deltaOrder(translation, extent) : storeOrder(sort, nameOf)
  const stored = translation.filter === undefined ? {} : { filter: translation.filter }
  if (extent.kind === 'all' || !translation.exact || order === 'unknown') {
    return pageOf(await candidates(source, stored, translation.exact ? undefined : filter, list, nameOf), list)
  }
  return storedPage(source, order === undefined ? stored : { ...stored, sort: order }, extent)
}

/**
 * A client that reads changes since a time by cursor gets them in the order of change: each page is one index lookup, and a
 * resource that changes meanwhile appears again instead of being missed. Numbered pages keep the order of creation, in
 * which a change moves no other resource to another page.
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

/** The first letter of a position is its kind: one from the store, a number of resources, or a resource. */
const positions = { store: 's', offset: 'o', resource: 'r' } as const

async function storedPage<T>(
  source: Search<T>,
  stored: Pick<SearchQuery, 'filter' | 'sort'>,
  extent: PageExtent,
): Promise<ResourcePage> {
  const { count } = extent
  const start = startOf(extent)
  // Not every store accepts a limit of 0.
  const query = { ...stored, ...start, limit: Math.max(1, count) }
  const found = await searched(source, query, start.after !== undefined, extent.kind === 'cursor')
  const items = found.items.slice(0, count)
  const resources = await resourcesOf(source, items)
  const next = extent.kind === 'cursor' ? nextPosition(found, start) : undefined
  return { resources, total: found.total, next }
}

function startOf(extent: PageExtent): Pick<SearchQuery, 'offset' | 'after'> {
  if (extent.kind === 'index') return { offset: extent.offset }
  const { after } = extent
  if (after === undefined) return { offset: 0 }
  const rest = after.slice(1)
  if (after.startsWith(positions.store)) return { offset: 0, after: rest }
  if (!after.startsWith(positions.offset) || !/^\d{1,15}$/.test(rest)) throw invalidCursor()
  return { offset: Number(rest) }
}

/** Without positions from the store, pages go by offset. */
function nextPosition<T>({ items, total, next }: SearchPage<T>, start: Pick<SearchQuery, 'offset' | 'after'>) {
  if (next !== undefined) return positions.store + next
  const end = start.offset + items.length
  return start.after === undefined && items.length > 0 && end < total ? `${positions.offset}${end}` : undefined
}

/** If a store refuses a search, the cause is the client's filter or position, unless too many resources match. */
async function searched<T>(source: Search<T>, query: SearchQuery, isPosition: boolean, byPosition = false) {
  try {
    return await source.search(query, byPosition)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'BAD_REQUEST' || error.keyword === 'tooMany') throw error
    throw isPosition ? invalidCursor(error) : scimError('invalidFilter', error.publicText, { cause: error })
  }
}

/** Sorts all matches and returns the requested page of them. */
function pageOf(matching: readonly ScimResource[], { sort, extent }: ListRequest): ResourcePage {
  const all = sort === undefined ? matching : sortResources(matching, sort)
  const total = all.length
  if (extent.kind === 'all') return { resources: all, total }
  const start = extent.kind === 'index' ? extent.offset : behind(all, extent.after)
  const resources = all.slice(start, start + extent.count)
  const last = resources.at(-1)
  if (extent.kind === 'index' || last === undefined || start + resources.length >= total) return { resources, total }
  return { resources, total, next: placeOf(last) }
}

/** With the type, since resources of two types may have the same id. */
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
  list: ListRequest,
  nameOf: NameOf,
): Promise<ScimResource[]> {
  const matching: ScimResource[] = []
  const times = new ComparedTimes(list, nameOf)
  let place: Pick<SearchQuery, 'offset' | 'after'> = { offset: 0 }
  for (let read = 0; ; ) {
    const found: SearchPage<T> = await searched(source, { ...stored, ...place, limit: chunk }, false)
    if (found.total > maxCandidates) throw tooManyCandidates(list, nameOf)
    for (const resource of await resourcesOf(source, found.items)) {
      times.see(resource)
      if (filter === undefined || evaluateFilter(filter, resource)) matching.push(resource)
    }
    read += found.items.length
    if (found.items.length === 0 || read >= found.total) {
      times.require()
      return matching
    }
    place = found.next === undefined ? { offset: read } : { offset: 0, after: found.next }
    // On SQLite nothing above waits, so others would.
    await yieldToOthers()
  }
}

/**
 * The times that a list is filtered or sorted by, and that its store does not search. Not every target has times; from an
 * empty list a client would conclude that nothing changed.
 */
class ComparedTimes {
  readonly #missing: Map<string, { readonly path: AttributePath; readonly isOrder: boolean }>
  #isEmpty = true

  constructor({ filter, sort, amongTypes }: ListRequest, nameOf: NameOf) {
    const leaves = filter === undefined ? [] : leavesOf(filter).map((leaf) => ({ path: pathOf(leaf), isOrder: false }))
    const used = sort === undefined ? leaves : [...leaves, { path: sort.path, isOrder: true }]
    const unserved = amongTypes === true ? [] : used.filter(({ path }) => locate(path, nameOf) === undefined)
    const times = unserved.filter(({ path }) => locateTime(path, timeAttributes) !== undefined)
    this.#missing = new Map(times.map((one) => [internalName(one.path), one]))
  }

  see(resource: ScimResource): void {
    this.#isEmpty = false
    for (const [name, { path }] of this.#missing) if (readPath(resource, path) !== undefined) this.#missing.delete(name)
  }

  /** Throws invalidFilter or invalidValue if there are resources, and none of them has the time. */
  require(): void {
    const [missing] = this.#missing
    if (missing === undefined || this.#isEmpty) return
    const [name, { isOrder }] = missing
    const text = `the target does not report "${name}", so resources cannot be found or sorted by it. Use another attribute.`
    throw isOrder ? scimError('invalidValue', `sortBy: ${text}`) : scimError('invalidFilter', `filter: ${text}`)
  }
}

/** The page of resources that were looked up one by one instead of searched. */
export function lookedUpPage(
  found: readonly ScimResource[],
  list: ListRequest,
  nameOf: NameOf,
  matches: (resource: ScimResource) => boolean,
): ResourcePage {
  const times = new ComparedTimes(list, nameOf)
  for (const resource of found) times.see(resource)
  times.require()
  return pageOf(found.filter(matches), list)
}

/** Names the attributes that the store cannot filter or sort by. */
function tooManyCandidates({ filter, sort }: ListRequest, nameOf: NameOf): GatewayError {
  const inexact = (filter === undefined ? [] : leavesOf(filter)).filter((leaf) => !translateFilter(leaf, nameOf).exact)
  const paths = [...inexact.map(pathOf), ...(sort === undefined ? [] : [sort.path])]
  const names = new Set(paths.map((path) => `"${internalName(path)}"`))
  const by = names.size === 0 ? '' : ` by ${[...names].join(', ')}`
  return scimError(
    'tooMany',
    `The target cannot filter or sort${by} itself, and too many resources would be read. Narrow the filter.`,
  )
}

/** Synchronous results cost no tick of the event loop; asynchronous ones are made a few at a time. */
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
 * The order in terms of the store: undefined if no resource has the attribute, `unknown` if stores do not agree on the
 * order (numbers, dates) or on which of several values counts.
 */
function storeOrder({ path, descending }: Sort, nameOf: NameOf): SortOrder | 'unknown' | undefined {
  const { attribute: owner, sub } = path
  const leaf = sub ?? owner
  const location = locate(path, nameOf)
  if (location?.names.length === 0) return undefined
  if (location === undefined || location.inside === true || location.firstOnly === true) return 'unknown'
  const [attribute, second] = location.names
  if (attribute !== undefined && location.isTime === true) return { attribute, descending, caseExact: false }
  // A target knows logins, and the names of other resources, by this one.
  const isLogin = attribute === 'userID'
  const ownName = sub === undefined && (isLogin || owner.name === 'userName' || owner.name === 'id')
  if (attribute === undefined || (second !== undefined && !ownName)) return 'unknown'
  if ((owner.multiValued && location.primaryFirst !== true) || leaf.multiValued || !textTypes.has(leaf.type))
    return 'unknown'
  return { attribute, descending, caseExact: leaf.caseExact }
}

interface ResourceType {
  readonly schema: ResourceSchema
  search(call: ScimCall, list: ListRequest): Promise<ResourcePage>
}

/** The list of one type, for any extent. */
interface TypeList {
  readonly list: ListRequest
  search(extent: Extent): Promise<ResourcePage>
}

const none = { kind: 'index', offset: 0, count: 0 } as const satisfies Extent

/** Lists all resource types (RFC 7644 3.4.2.1): users, then groups, or in the requested order. */
export function rootSearch(resourceTypes: readonly ResourceType[], client: FilterOptions): Handler {
  const knownNames = resourceTypes.map((type) => {
    const others = resourceTypes.filter((other) => other !== type).map(({ schema }) => schema)
    // Each type also knows the names of the others, whose attributes have no value in it.
    const { core, extensions } = type.schema
    return new ResourceSchema(core, [...extensions, ...others.flatMap((other) => [other.core, ...other.extensions])])
  })
  return async (call) => {
    const extent = parseExtent(call, 'root')
    const types = resourceTypes.map((type, i): TypeList => {
      const { schema } = type
      const known = knownNames[i] ?? schema
      const list = {
        name: schema.core.name,
        filter: parseTypeFilter(call, schema, client, known),
        sort: parseOrder(call, known),
        projection: projectionOf(call, schema),
        extent,
        amongTypes: true,
      }
      return { list, search: (own) => type.search(call, { ...list, extent: own }) }
    })
    const whole = { name: 'root', filter: undefined, sort: undefined, projection: undefined, extent }
    const { resources, ...page } = await rootPage(types, whole, extent)
    const shown = (resource: ScimResource): ScimResource => {
      const type = types.find(({ list }) => list.name === resourceTypeOf(resource))
      return type?.list.projection?.apply(resource) ?? resource
    }
    return listAnswer(call, whole, { ...page, resources: resources.map(shown) })
  }
}

async function rootPage(types: readonly TypeList[], whole: ListRequest, extent: PageExtent): Promise<ResourcePage> {
  const sorts = new Map(types.flatMap(({ list }) => (list.sort === undefined ? [] : [[list.name, list.sort]])))
  const [sort] = sorts.values()
  if (sort === undefined) return extent.kind === 'cursor' ? byCursor(types, extent) : byIndex(types, extent)
  // The order applies across the types, so all matches are read.
  const all: ScimResource[] = []
  for (const { search } of types) all.push(...(await search({ kind: 'all' })).resources)
  const pathOf = (resource: ScimResource) => (sorts.get(resourceTypeOf(resource) ?? '') ?? sort).path
  return pageOf(sortResources(all, sort, pathOf), whole)
}

async function byIndex(types: readonly TypeList[], { offset, count }: IndexExtent): Promise<ResourcePage> {
  const resources: ScimResource[] = []
  let total = 0
  for (const { search } of types) {
    const own = { offset: Math.max(0, offset - total), count: count - resources.length }
    const page = await search({ kind: 'index', ...own })
    resources.push(...page.resources)
    total += page.total
  }
  return { resources, total }
}

/** A position is the number of a type and a position in its list, which is empty at the start. */
async function byCursor(types: readonly TypeList[], extent: CursorExtent): Promise<ResourcePage> {
  const [at, after] = extent.after === undefined ? [0, undefined] : readPosition(extent.after, types.length)
  const resources: ScimResource[] = []
  let total = 0
  let next: string | undefined
  for (const [i, { search }] of types.entries()) {
    const count = extent.count - resources.length
    const isRead = i >= at && next === undefined && count > 0
    const page = await search(isRead ? { kind: 'cursor', after: i === at ? after : undefined, count } : none)
    total += page.total
    if (isRead) {
      resources.push(...page.resources)
      if (page.next !== undefined) next = `${i}${page.next}`
    } else if (i > at && next === undefined && page.total > 0) {
      next = String(i)
    }
  }
  return { resources, total, next }
}

function readPosition(position: string, types: number): [number, string | undefined] {
  const [, number, after] = /^(\d{1,4})(.*)$/s.exec(position) ?? []
  const at = number === undefined ? types : Number(number)
  if (at >= types) throw invalidCursor()
  return [at, after === '' ? undefined : after]
}
