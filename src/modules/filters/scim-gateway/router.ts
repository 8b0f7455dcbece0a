import { GatewayError } from '#kernel/errors.ts'
import { acceptsJson } from '#protocols/scim/media-type.ts'
import type { Exchange } from '#sdk/exchange.ts'
import { type GatewayResponse, header } from '#sdk/http.ts'
import { DiscoveryEndpoint } from './discovery-endpoint.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { GroupEndpoint } from './group-endpoint.ts'
import { notSupported, type ScimCall } from './scim-call.ts'
import { UserEndpoint } from './user-endpoint.ts'

type Handler = (call: ScimCall) => Promise<GatewayResponse>
type Methods = ReadonlyMap<string, Handler>

interface Resource {
  readonly collection: Methods
  readonly item: Methods
}

/** Parts of the protocol that are known and not offered. */
const notOffered = new Set(['Me', 'Bulk', '.search'])

export type Router = (exchange: Exchange) => Promise<GatewayResponse>

/** Throws NOT_FOUND, METHOD_NOT_ALLOWED, NOT_ACCEPTABLE and NOT_SUPPORTED before any endpoint is reached. */
export function createRouter(parts: GatewayParts): Router {
  const resources = table(parts)
  return async (exchange) => {
    const { request } = exchange
    const [name = '', id = '', ...rest] = segments(exchange.pathInfo)
    if (notOffered.has(name) || id === '.search') throw notSupported('This part of SCIM is not offered here.')
    const resource = resources.get(name)
    if (resource === undefined || rest.length > 0 || id.includes('\0')) throw nothingHere(exchange)
    const methods = id === '' ? resource.collection : resource.item
    if (methods.size === 0) throw nothingHere(exchange)
    if (request.method === 'OPTIONS') return { status: 204, headers: { allow: allowed(methods) } }
    const head = request.method === 'HEAD'
    const handler = methods.get(head ? 'GET' : request.method)
    if (handler === undefined) {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: allowed(methods) } })
    }
    if (!acceptsJson(header(request, 'accept')))
      throw new GatewayError('NOT_ACCEPTABLE', 'neither JSON type is accepted')
    const response = await handler({ exchange, id, base: request.origin + exchange.mount })
    return head ? { status: response.status, headers: response.headers } : response
  }
}

function table(parts: GatewayParts): ReadonlyMap<string, Resource> {
  const users = new UserEndpoint(parts)
  const groups = new GroupEndpoint(parts)
  const discovery = new DiscoveryEndpoint(parts.config)
  const both = (handler: Handler): Resource => ({
    collection: new Map([['GET', handler]]),
    item: new Map([['GET', handler]]),
  })
  return new Map([
    ['Users', resource(users)],
    ['Groups', resource(groups)],
    [
      'ServiceProviderConfig',
      { collection: new Map([['GET', (call: ScimCall) => discovery.serviceProviderConfig(call)]]), item: new Map() },
    ],
    ['ResourceTypes', both((call) => discovery.resourceTypes(call))],
    ['Schemas', both((call) => discovery.schemas(call))],
  ])
}

function resource(endpoint: UserEndpoint | GroupEndpoint): Resource {
  return {
    collection: new Map<string, Handler>([
      ['GET', (call) => endpoint.list(call)],
      ['POST', async (call) => endpoint.create(call)],
    ]),
    item: new Map<string, Handler>([
      ['GET', (call) => endpoint.get(call)],
      ['PUT', (call) => endpoint.replace(call)],
      ['PATCH', (call) => endpoint.patch(call)],
      ['DELETE', (call) => endpoint.delete(call)],
    ]),
  }
}

const allowed = (methods: Methods): string =>
  [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')

/** The path's parts, decoded; a slash at the end does not count. */
function segments(pathInfo: string): string[] {
  const parts = pathInfo.split('/').slice(1)
  if (parts.at(-1) === '') parts.pop()
  try {
    return parts.map((part) => (part.includes('%') ? decodeURIComponent(part) : part))
  } catch (cause) {
    throw new GatewayError('NOT_FOUND', 'the path is not well encoded', { cause })
  }
}

const nothingHere = ({ pathInfo }: Exchange): GatewayError => new GatewayError('NOT_FOUND', `nothing at ${pathInfo}`)
