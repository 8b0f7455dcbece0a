import { settleFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { type FilterOptions, parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { listResponse, parsePage, readCursor, writeCursor } from '#protocols/scim/lists.ts'
import type { Projection } from '#protocols/scim/projection.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { isCore, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { parseSort, type Sort } from '#protocols/scim/sort.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { answer, projectionOf, type ScimCall } from './scim-call.ts'

/** Which part of what matches is wanted. */
export type Extent =
  | { readonly kind: 'index'; readonly offset: number; readonly count: number }
  /** What comes behind a position that an earlier page gave; from the start without one. */
  | { readonly kind: 'cursor'; readonly after: string | undefined; readonly count: number }
  /** Everything, within `maxCandidates`. */
  | { readonly kind: 'all' }

/** A list as it was asked for, whichever way: by GET or by `.search`, of one type or of all. */
export interface ListRequest {
  /** What is listed; the same query elsewhere has other cursors. */
  readonly name: string
  /** Everything when absent. */
  readonly filter: ScimFilter | undefined
  readonly sort: Sort | undefined
  readonly extent: Extent
  /** Undefined: as the schema says. */
  readonly projection: Projection | undefined
}

export interface ResourcePage {
  readonly resources: readonly ScimResource[]
  /** How many match in all. */
  readonly total: number
  /** The position behind this page, where it was asked for by cursor and is not the last. */
  readonly next?: string
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
 * The filter as it applies to resources of one type. `known` has the names of other types too; the attributes they name
 * have no value here (RFC 7644 3.4.2.1).
 */
export function parseTypeFilter(
  { query }: ScimCall,
  schema: ResourceSchema,
  { strict = false, aliases }: FilterOptions,
  known: ResourceSchema = schema,
): ScimFilter | undefined {
  const text = query.get('filter')
  if (text === null) return undefined
  const own = new Set<string | undefined>([undefined, ...schema.extensions.map(({ id }) => id)])
  return settleFilter(
    // Of the types of a list none is the one whose names need no URN.
    parseFilter(text, known, {
      strict,
      unqualified: !strict || known !== schema,
      ...(aliases === undefined ? {} : { aliases }),
    }),
    ({ attribute, extension }, sub) => !own.has(extension) || (attribute.name === 'meta' && sub === 'resourceType'),
    { meta: { resourceType: schema.core.name } },
  )
}

/** Members may be many and are not read to find groups, so nothing is sorted by them. */
export function parseOrder({ query }: ScimCall, schema: ResourceSchema): Sort | undefined {
  const sort = parseSort(query, schema)
  if (sort === undefined || !isCore(sort.path, 'members')) return sort
  throw scimError('invalidValue', 'sortBy: groups cannot be sorted by members. Sort by another attribute.')
}

export function parseExtent(call: ScimCall, name: string): Extent {
  const page = parsePage(call.query)
  if (page.kind === 'index') return { kind: 'index', offset: page.startIndex - 1, count: page.count }
  const after = page.cursor === '' ? undefined : readCursor(scopeOf(call, name), page.cursor)
  return { kind: 'cursor', after, count: page.count }
}

/** The ListResponse of a page. */
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
