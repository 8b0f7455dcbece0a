import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import {
  type BulkOperation,
  type BulkOutcome,
  maxBulkOperations,
  maxBulkPayload,
  readBulkRequest,
  runBulk,
  tooLarge,
} from '#protocols/scim/bulk.ts'
import { resourceTypeDocument, schemaDocument, serviceProviderConfig } from '#protocols/scim/discovery.ts'
import { listResponse, readSearchRequest } from '#protocols/scim/lists.ts'
import { acceptsJson } from '#protocols/scim/message.ts'
import { errorBody, scimMediaType } from '#protocols/scim/scim-error.ts'
import { eventUris } from '#protocols/scim/security-events.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type GatewayResponse, header } from '#sdk/filter/http.ts'
import { GroupEndpoint } from './group-endpoint.ts'
import { rootSearch } from './lists.ts'
import { afterWorkflow } from './lookups.ts'
import { ChangePending, type GatewayParts } from './run-workflow.ts'
import {
  answer,
  callOf,
  type Handler,
  type Methods,
  notFound,
  notSupported,
  type Route,
  type ScimCall,
} from './scim-call.ts'
import { UserEndpoint } from './user-endpoint.ts'

export type Router = (exchange: Exchange) => Promise<GatewayResponse>

/** Throws NOT_FOUND, METHOD_NOT_ALLOWED and NOT_ACCEPTABLE before it calls an endpoint. */
export function createRouter(parts: GatewayParts): Router {
  const places = createPlaces(parts)
  const { mediaType } = parts.config.client
  return async (exchange) => {
    const { request, pathInfo } = exchange
    const route = findRoute(places, pathInfo)
    if (route === undefined) throw new GatewayError('NOT_FOUND', `nothing at ${pathInfo}`)
    if (request.method === 'OPTIONS') return { status: 204, headers: { allow: allowed(route.methods) } }
    const isHead = request.method === 'HEAD'
    const handler = route.methods.get(isHead ? 'GET' : request.method)
    if (handler === undefined) {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: allowed(route.methods) } })
    }
    if (!acceptsJson(header(request, 'accept'), mediaType)) {
      throw new GatewayError('NOT_ACCEPTABLE', 'neither JSON type is accepted', {
        publicText: `Accept: the answer is ${scimMediaType}. Accept that, application/json or */*.`,
      })
    }
    const call = callOf(exchange, route.id, mediaType)
    const response = await handler(call).catch((error: unknown) => {
      throw call.notes.workflows.length > 0 ? afterWorkflow(error) : error
    })
    return isHead ? withoutBody(response) : response
  }
}

/** The length is that of the body that GET would return (RFC 9110 8.6). */
function withoutBody({ status, headers, body }: GatewayResponse): GatewayResponse {
  const length = typeof body === 'string' ? { 'content-length': String(Buffer.byteLength(body)) } : {}
  return { status, headers: { ...headers, ...length } }
}

const allowed = (methods: Methods): string =>
  [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')

interface Place {
  readonly methods: Methods
  /** The methods of a path with an id. */
  readonly item?: Methods
  /** The methods of a path with `.search` in place of an id. */
  readonly search?: Methods
}

type Places = ReadonlyMap<string, Place>

function createPlaces(parts: GatewayParts): Places {
  const users = new UserEndpoint(parts)
  const groups = new GroupEndpoint(parts)
  const discovery = discoveryHandlers(parts)
  const root = rootSearch(parts.config, {
    users: (call, list) => users.search(call, list),
    groups: (call, list) => groups.search(call, list),
  })
  const resources: Places = new Map([
    ['Users', resource(users)],
    ['Groups', resource(groups)],
  ])
  const bulk = bulkHandler((path) => findRoute(resources, path), parts.log)
  return new Map<string, Place>([
    ['Users', { ...resource(users), search: searchBy((call) => users.list(call)) }],
    ['Groups', { ...resource(groups), search: searchBy((call) => groups.list(call)) }],
    ['', { methods: new Map([['GET', root]]) }],
    ['.search', { methods: searchBy(root) }],
    ['Me', { methods: ownResource(parts, users) }],
    ['Bulk', { methods: new Map([['POST', bulk]]) }],
    ['ServiceProviderConfig', { methods: new Map([['GET', discovery.serviceProviderConfig]]) }],
    ['ResourceTypes', documents(discovery.resourceTypes)],
    ['Schemas', documents(discovery.schemas)],
  ])
}

/** Throws NOT_FOUND for a path that is not well encoded. */
function findRoute(places: Places, path: string): Route | undefined {
  const [name, id = '', ...rest] = segments(path)
  const place = name === '' ? undefined : places.get(name ?? '')
  if (place === undefined || rest.length > 0 || id.includes('\0')) return undefined
  if (id === '') return { methods: place.methods, id }
  if (id === '.search' && place.search !== undefined) return { methods: place.search, id: '' }
  return place.item === undefined ? undefined : { methods: place.item, id }
}

/** The decoded segments of the path; a slash at the end does not count. */
function segments(path: string): string[] {
  const parts = path.split('/').slice(1)
  if (parts.at(-1) === '') parts.pop()
  try {
    return parts.map((part) => (part.includes('%') ? decodeURIComponent(part) : part))
  } catch (cause) {
    throw new GatewayError('NOT_FOUND', 'the path is not well encoded', { cause })
  }
}

const resource = (endpoint: UserEndpoint | GroupEndpoint): Place => ({
  methods: new Map<string, Handler>([
    ['GET', (call) => endpoint.list(call)],
    ['POST', withPending((call) => endpoint.create(call))],
  ]),
  item: itemMethods(endpoint, async (call) => call),
})

const itemMethods = (endpoint: UserEndpoint | GroupEndpoint, at: (call: ScimCall) => Promise<ScimCall>): Methods =>
  new Map<string, Handler>([
    ['GET', async (call) => endpoint.get(await at(call))],
    ['PUT', withPending(async (call) => endpoint.replace(await at(call)))],
    ['PATCH', withPending(async (call) => endpoint.patch(await at(call)))],
    ['DELETE', withPending(async (call) => endpoint.delete(await at(call)))],
  ])

/** A search whose parameters are in the body instead of the query. */
const searchBy = (list: Handler): Methods =>
  new Map([['POST', async (call) => list({ ...call, query: readSearchRequest(await call.body()) })]])

const documents = (handler: Handler): Place => {
  const methods = new Map([['GET', handler]])
  return { methods, item: methods }
}

/** `/Me` (RFC 7644 3.11): the user whose login is that of the caller, under the user's own address. */
function ownResource({ lookups }: GatewayParts, users: UserEndpoint): Methods {
  const ownCall = async (call: ScimCall): Promise<ScimCall> => {
    const { uid } = call.exchange.subject
    const found = uid === '' ? undefined : await lookups.userByLogin(uid)
    if (found !== undefined) return { ...call, id: found.id }
    throw new GatewayError('NOT_FOUND', `no user ${JSON.stringify(uid)}`, {
      publicText: 'The caller does not match any user, so /Me is not available.',
    })
  }
  return new Map<string, Handler>([
    ...itemMethods(users, ownCall),
    // RFC 7644 3.11: a service that does not let callers create themselves answers 501.
    ['POST', () => Promise.reject(notSupported('/Me cannot be created. Use POST /Users.'))],
  ])
}

/** Answers 202 for a change that waits. */
const withPending =
  (handler: Handler): Handler =>
  async (call) => {
    try {
      const response = await handler(call)
      return call.notes.pending === undefined ? response : accepted(call.notes.pending)
    } catch (error) {
      if (error instanceof ChangePending) return accepted(error.run)
      throw error
    }
  }

const accepted = (workflowId: string) =>
  answer(202, {
    schemas: ['urn:gatehouse:params:scim:api:messages:1.0:Accepted'],
    detail: 'The change was accepted and waits for a decision.',
    workflowId,
  })

/** `/ServiceProviderConfig`, `/ResourceTypes` and `/Schemas`: exactly what this gateway supports. */
function discoveryHandlers({ config, lookups, storage }: GatewayParts) {
  const types = async () => [
    { name: 'User', endpoint: '/Users', schema: (await storage.users()).announced },
    { name: 'Group', endpoint: '/Groups', schema: (await storage.groups()).announced },
  ]
  return {
    serviceProviderConfig: async ({ base }) => {
      const features = {
        bulk: { maxOperations: maxBulkOperations, maxPayloadSize: maxBulkPayload },
        changePassword: storage.setsPasswords,
        etag: lookups.keepsVersions,
        ...(config.events === undefined ? {} : { eventUris: eventUris(config.events.payload) }),
      }
      return answer(200, serviceProviderConfig(base, features))
    },
    resourceTypes: async (call) => {
      const documents = (await types()).map((type) => resourceTypeDocument(call.base, type))
      return documentAnswer(call, 'resource type', documents)
    },
    schemas: async (call) => {
      const schemas = (await types()).flatMap(({ schema }) => [schema.core, ...schema.extensions])
      const documents = schemas.map((schema) => schemaDocument(call.base, schema))
      return documentAnswer(call, 'schema', documents)
    },
  } satisfies Record<string, Handler>
}

/** RFC 7644 4: a filter is refused with 403, so that no client takes the whole list for matches. */
function documentAnswer(call: ScimCall, what: string, documents: readonly JsonObject[]): GatewayResponse {
  if (call.query.has('filter')) {
    const text = 'This list cannot be filtered. Read it without "filter".'
    throw new GatewayError('ACCESS_DENIED', text, { publicText: text })
  }
  if (call.id === '') return answer(200, listResponse(documents, documents.length))
  const one = documents.find(({ id }) => typeof id === 'string' && id.toLowerCase() === call.id.toLowerCase())
  if (one === undefined) throw notFound(what, call.id)
  return answer(200, one)
}

/** `/Bulk`: each operation is a call of its own, as if it were a request. */
function bulkHandler(findRoute: (path: string) => Route | undefined, log: Logger): Handler {
  const perform = async (call: ScimCall, operation: BulkOperation): Promise<BulkOutcome> => {
    try {
      const route = findRoute(operation.path)
      if (route === undefined) throw new GatewayError('NOT_FOUND', `nothing at ${operation.path}`)
      const handler = isItem(operation) === (route.id !== '') ? route.methods.get(operation.method) : undefined
      if (handler === undefined) throw new GatewayError('METHOD_NOT_ALLOWED', operation.method)
      return outcomeOf(call, operation, await handler(subCall(call, operation, route)))
    } catch (thrown) {
      const error = asGatewayError(thrown)
      const { id: requestId } = call.exchange.request
      if (!error.isRefusal) log.error('an operation of a bulk request failed', { err: error, requestId })
      return { ...locationOf(call, operation), status: error.status, response: errorBody(error) }
    }
  }
  return async (call) => {
    const request = readBulkRequest(await bodyOf(call))
    call.notes.operations = request.operations.map(({ method, path }) => ({ method, path }))
    const { signal } = call.exchange.request
    const isStopped = (): boolean => signal.aborted
    return answer(200, await runBulk(request, (operation) => perform(call, operation), isStopped))
  }
}

async function bodyOf(call: ScimCall) {
  try {
    return await call.body(maxBulkPayload)
  } catch (error) {
    const isLarge = error instanceof GatewayError && error.code === 'BODY_TOO_LARGE'
    throw isLarge ? tooLarge(`maxPayloadSize (${maxBulkPayload})`, error) : error
  }
}

/** Shares the notes of the request, except for the operations of a PATCH inside it. */
const subCall = (call: ScimCall, { method, version, data }: BulkOperation, { id }: Route): ScimCall => ({
  ...call,
  method,
  id,
  query: new URLSearchParams(),
  ifMatch: version,
  ifNoneMatch: undefined,
  notes: { workflows: call.notes.workflows, changes: call.notes.changes },
  body: async () => data ?? null,
})

const isItem = ({ method }: BulkOperation): boolean => method !== 'POST'

function outcomeOf(call: ScimCall, operation: BulkOperation, response: GatewayResponse): BulkOutcome {
  const { status, headers, body } = response
  const { location, etag } = headers
  const id = operation.method === 'POST' && typeof body === 'string' ? idIn(body) : undefined
  return {
    status,
    ...locationOf(call, operation),
    ...(typeof location === 'string' ? { location } : {}),
    ...(typeof etag === 'string' ? { version: etag } : {}),
    ...(id === undefined ? {} : { id }),
  }
}

/** A POST that failed has no location (RFC 7644 3.7). */
const locationOf = (call: ScimCall, operation: BulkOperation): { location?: string } =>
  isItem(operation) ? { location: call.base + operation.path } : {}

function idIn(body: string): string | undefined {
  const resource: unknown = JSON.parse(body)
  return isJsonObject(resource) && typeof resource['id'] === 'string' ? resource['id'] : undefined
}
