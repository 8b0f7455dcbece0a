import { invalidCursor } from '#protocols/scim/lists.ts'
import { resourceTypeOf, type ScimResource } from '#protocols/scim/resource.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { sortResources } from '#protocols/scim/sort.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { GroupEndpoint } from './group-endpoint.ts'
import {
  type Extent,
  type ListRequest,
  listAnswer,
  parseExtent,
  parseOrder,
  parseTypeFilter,
  type ResourcePage,
} from './list-request.ts'
import { pageOf } from './paged-search.ts'
import { projectionOf, type ScimCall } from './scim-call.ts'
import type { UserEndpoint } from './user-endpoint.ts'

interface Type {
  readonly schema: ResourceSchema
  /** With the names of the other types, whose attributes have no value here. */
  readonly known: ResourceSchema
  search(call: ScimCall, list: ListRequest): Promise<ResourcePage>
}

/** What one type has in an extent of its own. */
interface Part {
  readonly list: ListRequest
  search(extent: Extent): Promise<ResourcePage>
}

const none = { kind: 'index', offset: 0, count: 0 } as const satisfies Extent

/** Lists over all types (RFC 7644 3.4.2.1): users, then groups, or in the order that is asked for. */
export class RootSearch {
  readonly #types: readonly Type[]
  readonly #client: GatewayConfig['client']

  constructor({ users, groups, client }: GatewayConfig, userEndpoint: UserEndpoint, groupEndpoint: GroupEndpoint) {
    const widened = (own: ResourceSchema, other: ResourceSchema): ResourceSchema =>
      new ResourceSchema(own.core, [...own.extensions, other.core, ...other.extensions])
    this.#client = client
    this.#types = [
      {
        schema: users.schema,
        known: widened(users.schema, groups.schema),
        search: (call, list) => userEndpoint.search(call, list),
      },
      {
        schema: groups.schema,
        known: widened(groups.schema, users.schema),
        search: (call, list) => groupEndpoint.search(call, list),
      },
    ]
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const name = 'root'
    const extent = parseExtent(call, name)
    const parts = this.#types.map((type): Part => {
      const { schema, known } = type
      const filter = parseTypeFilter(call, schema, this.#client, known)
      const list = { name: schema.core.name, filter, sort: parseOrder(call, known), extent }
      const projection = projectionOf(call, schema)
      return {
        list: { ...list, projection },
        search: (own) => type.search(call, { ...list, projection, extent: own }),
      }
    })
    const sorted = parts.some(({ list }) => list.sort !== undefined)
    const page = await (sorted ? inOrder : extent.kind === 'cursor' ? byCursor : byIndex)(parts, extent)
    const whole = { name, filter: undefined, sort: undefined, projection: undefined, extent }
    return listAnswer(call, whole, { ...page, resources: page.resources.map((resource) => shown(parts, resource)) })
  }
}

function shown(parts: readonly Part[], resource: ScimResource): ScimResource {
  const type = resourceTypeOf(resource)
  return parts.find(({ list }) => list.name === type)?.list.projection?.apply(resource) ?? resource
}

/** An order goes across the types, so everything that matches is read. */
async function inOrder(parts: readonly Part[], extent: Extent): Promise<ResourcePage> {
  const all: ScimResource[] = []
  for (const { search } of parts) all.push(...(await search({ kind: 'all' })).resources)
  const sorts = new Map(parts.flatMap(({ list }) => (list.sort === undefined ? [] : [[list.name, list.sort]])))
  const [sort] = sorts.values()
  const ordered =
    sort === undefined
      ? all
      : sortResources(all, sort, (resource) => (sorts.get(resourceTypeOf(resource) ?? '') ?? sort).path)
  return pageOf(ordered, { name: 'root', filter: undefined, sort: undefined, projection: undefined, extent })
}

async function byIndex(parts: readonly Part[], extent: Extent): Promise<ResourcePage> {
  const { offset, count } = extent.kind === 'index' ? extent : none
  const resources: ScimResource[] = []
  let total = 0
  for (const { search } of parts) {
    const own = { offset: Math.max(0, offset - total), count: count - resources.length }
    const page = await search({ kind: 'index', ...own })
    resources.push(...page.resources)
    total += page.total
  }
  return { resources, total }
}

/** A position is the number of a type and a position in it, which is empty at its start. */
async function byCursor(parts: readonly Part[], extent: Extent): Promise<ResourcePage> {
  if (extent.kind !== 'cursor') return byIndex(parts, extent)
  const [at, after] = extent.after === undefined ? [0, undefined] : readPosition(extent.after, parts.length)
  const resources: ScimResource[] = []
  let total = 0
  let next: string | undefined
  for (const [i, { search }] of parts.entries()) {
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
  return { resources, total, ...(next === undefined ? {} : { next }) }
}

function readPosition(position: string, types: number): [number, string | undefined] {
  const at = /^\d/.test(position) ? Number(position[0]) : types
  if (at >= types) throw invalidCursor()
  return [at, position.length === 1 ? undefined : position.slice(1)]
}
