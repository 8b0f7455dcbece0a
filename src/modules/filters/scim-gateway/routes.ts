import { GatewayError } from '#kernel/errors.ts'
import { readSearchRequest } from '#protocols/scim/lists.ts'
import { BulkEndpoint } from './bulk-endpoint.ts'
import { DiscoveryEndpoint } from './discovery-endpoint.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { GroupEndpoint } from './group-endpoint.ts'
import { MeEndpoint } from './me-endpoint.ts'
import { withPending } from './pending-change.ts'
import { RootSearch } from './root-search.ts'
import type { FindRoute, Handler, Methods, Route } from './route.ts'
import { notSupported } from './scim-call.ts'
import { UserEndpoint } from './user-endpoint.ts'

interface Place {
  readonly methods: Methods
  /** What stands behind the id that follows. */
  readonly item?: Methods
  /** What stands at names in place of an id. */
  readonly named?: ReadonlyMap<string, Methods>
}

const search = '.search'

export function createRoutes(parts: GatewayParts): FindRoute {
  const users = new UserEndpoint(parts)
  const groups = new GroupEndpoint(parts)
  const discovery = new DiscoveryEndpoint(parts)
  const me = new MeEndpoint(parts, users)
  const root = new RootSearch(parts.config, users, groups)
  const resources = new Map([
    ['Users', resource(users)],
    ['Groups', resource(groups)],
  ])
  const bulk = new BulkEndpoint((path) => find(resources, path), parts.log)
  const places = new Map<string, Place>([
    ['Users', { ...resource(users), named: searchOf(users) }],
    ['Groups', { ...resource(groups), named: searchOf(groups) }],
    ['', { methods: new Map([get((call) => root.list(call))]) }],
    [search, { methods: new Map([searchBy((call) => root.list(call))]) }],
    ['Me', { methods: ownResource(me) }],
    ['Bulk', { methods: new Map<string, Handler>([['POST', (call) => bulk.run(call)]]) }],
    ['ServiceProviderConfig', { methods: new Map([get((call) => discovery.serviceProviderConfig(call))]) }],
    ['ResourceTypes', documents((call) => discovery.resourceTypes(call))],
    ['Schemas', documents((call) => discovery.schemas(call))],
  ])
  return (path) => find(places, path)
}

function find(places: ReadonlyMap<string, Place>, path: string): Route | undefined {
  const [name, id = '', ...rest] = segments(path)
  const place = name === '' ? undefined : places.get(name ?? '')
  if (place === undefined || rest.length > 0 || id.includes('\0')) return undefined
  if (id === '') return { methods: place.methods, id }
  const named = place.named?.get(id)
  if (named !== undefined) return { methods: named, id: '' }
  return place.item === undefined ? undefined : { methods: place.item, id }
}

/** The path's parts, decoded; a slash at the end does not count. */
function segments(path: string): string[] {
  const parts = path.split('/').slice(1)
  if (parts.at(-1) === '') parts.pop()
  try {
    return parts.map((part) => (part.includes('%') ? decodeURIComponent(part) : part))
  } catch (cause) {
    throw new GatewayError('NOT_FOUND', 'the path is not well encoded', { cause })
  }
}

const get = (handler: Handler): [string, Handler] => ['GET', handler]

/** A list asked for by a body instead of a query. */
const searchBy = (list: Handler): [string, Handler] => [
  'POST',
  async (call) => list({ ...call, query: readSearchRequest(await call.body()) }),
]

const documents = (handler: Handler): Place => {
  const methods = new Map([get(handler)])
  return { methods, item: methods }
}

const resource = (endpoint: UserEndpoint | GroupEndpoint): Place => ({
  methods: new Map([get((call) => endpoint.list(call)), ['POST', withPending((call) => endpoint.create(call))]]),
  item: new Map([
    get((call) => endpoint.get(call)),
    ['PUT', withPending((call) => endpoint.replace(call))],
    ['PATCH', withPending((call) => endpoint.patch(call))],
    ['DELETE', withPending((call) => endpoint.delete(call))],
  ]),
})

const searchOf = (endpoint: UserEndpoint | GroupEndpoint): ReadonlyMap<string, Methods> =>
  new Map([[search, new Map([searchBy((call) => endpoint.list(call))])]])

const ownResource = (me: MeEndpoint): Methods =>
  new Map([
    get((call) => me.get(call)),
    ['PUT', withPending((call) => me.replace(call))],
    ['PATCH', withPending((call) => me.patch(call))],
    ['DELETE', withPending((call) => me.delete(call))],
    // RFC 7644 3.11: a service that does not let callers create themselves answers 501.
    ['POST', () => Promise.reject(notSupported('/Me cannot be created. Use POST /Users.'))],
  ])
