import { Readable } from 'node:stream'
import type { ScimHost } from '#features/scim/host.ts'
import { type Uniqueness, uniquePaths, ValueLocks } from '#features/scim/types/unique-values.ts'
import { type Awaitable, andThen, settle } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { jsonBody } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { silentLogger } from '#kernel/logger.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { readSearchRequest } from '#protocols/scim/lists.ts'
import { errorBody, scimError, scimMediaType } from '#protocols/scim/schema/scim-error.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayResponse, header } from '#sdk/http/http.ts'
import { scimApi } from './api-description.ts'
import { bulkHandler } from './bulk.ts'
import { withJournal } from './call-journal.ts'
import { ClientRates } from './client-rates.ts'
import { DirectoryLookups } from './directory-lookups.ts'
import { discoveryHandlers } from './discovery.ts'
import { DryRun, isDryRun } from './dry-run.ts'
import { type GatewayConfig, lookupPlace, parseServedConfig, type ServedConfig, summarize } from './gateway-config.ts'
import { GroupEndpoint } from './group-endpoint.ts'
import { listAnswer, parseListRequest, rootSearch } from './lists.ts'
import { afterWorkflow, type Lookups, targetLookups } from './lookups.ts'
import { Managers } from './managers.ts'
import { type ClientProfile, parameterTable } from './parameter-table.ts'
import { GroupMapping, UserMapping } from './resource-mapping.ts'
import { ChangePending, type GatewayParts } from './run-workflow.ts'
import {
  acceptsJson,
  answer,
  callOf,
  type Handler,
  type Methods,
  noContent,
  notSupported,
  type Route,
  type Router,
  type ScimCall,
} from './scim-call.ts'
import { withEvents } from './security-events.ts'
import { GatewayStorage, servedFlow } from './stored-schema.ts'
import { UnfinishedChanges } from './unfinished-changes.ts'
import { UserEndpoint } from './user-endpoint.ts'
import { attributeMarks, type DeletedMarks, noMarks, storedMarks, VisibleLookups } from './visible-lookups.ts'

/** Changes that may wait or run at the same time in one gateway. */
const maxChanges = 4096

/** SCIM 2.0 in front of workflows: changes run a workflow, reads come from the target. */
export default defineFilter<ServedConfig, ScimHost>({
  className: 'filters.ScimGateway',
  aliases: ['com.tremolosecurity.proxy.filters.scim.Scim'],
  parameters: parameterTable,
  answers: true,
  errors: (error) => ({
    headers: { 'content-type': `${scimMediaType}; charset=utf-8` },
    body: jsonBody(errorBody(error)),
  }),
  parse: parseServedConfig,
  summarize: (config) => [
    ...summarize(config),
    ...config.types.map(({ users, workflows }) => ({ label: `workflow: ${users.type.name}`, value: workflows.user })),
  ],
  flow: servedFlow,
  api: scimApi,
  create: async (config, host) => {
    const { value: router, scope } = await buildScoped(async (opened) => {
      const hasEarlier = await host.runs.hasUnfinished().catch(() => true)
      const queue = new KeyedQueue({ maxPending: maxChanges })
      const endpoints = new Map([
        ['Group', '/Groups'],
        ...[config, ...config.types].map(({ users: { type } }) => [type.name, type.endpoint] as const),
      ])
      const partsOf = (one: GatewayConfig) => createParts(one, host, opened, { queue, hasEarlier, endpoints })
      const types: GatewayParts[] = []
      for (const type of config.types) types.push(await partsOf(type))
      return withEventsAndJournal(await partsOf(config), types, { config, host, opened })
    })
    return { handle: (exchange) => router(exchange), close: () => scope.close() }
  },
})

async function createParts(
  config: GatewayConfig,
  host: ScimHost,
  opened: Scope,
  shared: { readonly hasEarlier: boolean } & Pick<GatewayParts, 'queue' | 'endpoints'>,
): Promise<GatewayParts> {
  const { queue, endpoints, hasEarlier } = shared
  const toInternal = opened.own(await config.toInternal.create(host))
  const toScim = opened.own(await config.toScim.create(host))
  const stored = createLookups(config, host)
  const marks = await openMarks(config, host, opened)
  // Stored values that do not fit are logged once, by the mapping that answers clients.
  const silent = new UserMapping(config, { toScim, toInternal }, silentLogger, stored)
  const lookups = new VisibleLookups(stored, marks, config, silent)
  return {
    config,
    lookups,
    storage: new GatewayStorage(config, lookups, host),
    users: new UserMapping(config, { toScim, toInternal }, host.log, lookups),
    groups: new GroupMapping(config, lookups, host.log),
    managers: new Managers(config, lookups, silent, host.log),
    runs: host.runs,
    unfinished: new UnfinishedChanges(config, host, hasEarlier),
    uniqueness: await openUniqueness(config, host, opened),
    endpoints,
    queue,
    rates: createRates(config, host),
    log: host.log,
  }
}

function createLookups(config: GatewayConfig, host: ScimHost): Lookups {
  const { lookup } = config
  if (lookup.kind === 'directory') return new DirectoryLookups(host.directory, lookup.base, config)
  return targetLookups(host.targets.get(lookup.name), config)
}

function createRates({ rate }: GatewayConfig, host: ScimHost): ClientRates | undefined {
  if (rate === undefined) return undefined
  const { name: gateway, rateLimits, clock } = host
  return new ClientRates({ gateway, rate, rateLimits, clock })
}

/** Stored under what users are looked up in, so that all gateways on one target share the marks. */
async function openMarks(config: GatewayConfig, host: ScimHost, opened: Scope): Promise<DeletedMarks> {
  const { lookup, users } = config
  if (users.active === undefined) return noMarks
  if (users.deletedAttribute !== undefined) return attributeMarks(users.deletedAttribute, host.clock)
  return storedMarks(
    opened.own(await host.openUserDirectory({ name: `scim-deleted/${lookupPlace(lookup)}` })),
    host.clock,
  )
}

/** The locks are stored under where the resources are, so that all gateways on one target share them. */
async function openUniqueness(
  { lookup, users }: GatewayConfig,
  host: ScimHost,
  opened: Scope,
): Promise<Uniqueness | undefined> {
  const paths = users.type.isCustom ? uniquePaths(users.schema, users.type.nameAttribute) : []
  if (paths.length === 0) return undefined
  const directory = opened.own(await host.openUserDirectory({ name: `scim-unique/${lookupPlace(lookup)}` }))
  const locks = new ValueLocks(directory, host.clock, (change) => host.runs.isOpen(change))
  // What stays is removed at another start, or taken over.
  await locks.prune().catch((err: unknown) => host.log.warn('locks of unique values were not removed', { err }))
  return { paths, locks }
}

/**
 * Events are inside the journal, so that the journal shows if they failed. A request is counted before anything else is
 * done for it, and outside of events, whose own reads are not requests of the client.
 */
async function withEventsAndJournal(
  parts: GatewayParts,
  types: readonly GatewayParts[],
  { config, host, opened }: { readonly config: ServedConfig; readonly host: ScimHost; readonly opened: Scope },
): Promise<Router> {
  const { events, journal } = config
  let handler = createRouter(parts, types)
  if (events !== undefined) {
    // Read or created now, so that an unusable key stops the start and not a delivery.
    await host.keys.signingKey(events.stream.key)
    const { append } = opened.own(host.eventStreams.open(events.stream))
    handler = withEvents(handler, { append, payload: events.payload, log: host.log })
  }
  const { rates } = parts
  if (rates !== undefined) {
    const inner = handler
    handler = (exchange) => andThen(rates.take(exchange.subject.identity), () => inner(exchange))
  }
  if (journal === 0) return handler
  const { add } = opened.own(host.journals.open({ name: host.name, keep: journal }))
  return withJournal(handler, add, host.clock)
}

/** Throws NOT_FOUND, METHOD_NOT_ALLOWED and NOT_ACCEPTABLE before it calls an endpoint. */
function createRouter(parts: GatewayParts, types: readonly GatewayParts[]): Router {
  const places = createPlaces(parts, types)
  const { mediaType } = parts.config.client
  return (exchange) => {
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
    const reads = isHead || request.method === 'GET'
    const called = callOf(exchange, route.id, mediaType)
    const call = reads ? called : withDryRun(called, parts.config)
    return settle(
      () => handler(call),
      (response) => (isHead ? withoutBody(response) : response),
      (error) => {
        throw call.notes.workflows.length > 0 ? afterWorkflow(error) : error
      },
    )
  }
}

/** Throws invalidValue for a dry run that the gateway doesn't understand or doesn't offer, before anything is done. */
function withDryRun(call: ScimCall, { dryRun }: GatewayConfig): ScimCall {
  if (!isDryRun(call.exchange.request)) return call
  if (dryRun === 'refuse') throw scimError('invalidValue', 'This gateway offers no dry runs. Nothing was changed.')
  call.notes.isDryRun = true
  return { ...call, dryRun: new DryRun() }
}

/** The length is that of the body that GET would return (RFC 9110 8.6), unless GET would not know it beforehand. */
function withoutBody({ status, headers, body }: GatewayResponse): GatewayResponse {
  if (body instanceof Readable) body.destroy()
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

function createPlaces(parts: GatewayParts, types: readonly GatewayParts[]): Places {
  const users = new UserEndpoint(parts)
  const groups = new GroupEndpoint(parts)
  const others = types.map((type) => new UserEndpoint(type))
  const discovery = discoveryHandlers(parts, types)
  const { client } = parts.config
  const root = rootSearch([users, groups, ...others], client)
  const resources: Places = new Map([
    ['Users', resource(users, client)],
    ['Groups', resource(groups, client)],
    ...others.map((other) => [other.type.endpoint.slice(1), resource(other, client)] as const),
  ])
  // A search is not an operation of a bulk request.
  const changed = new Map(Array.from(resources, ([name, { search: _, ...place }]) => [name, place]))
  const bulk = bulkHandler((path) => findRoute(changed, path), parts)
  return new Map<string, Place>([
    ...resources,
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

function resource(endpoint: UserEndpoint | GroupEndpoint, client: ClientProfile): Place {
  const list: Handler = async (call) => {
    const request = parseListRequest(call, endpoint.schema, client)
    return listAnswer(call, request, await endpoint.search(call, request))
  }
  return {
    methods: new Map<string, Handler>([
      ['GET', list],
      ['POST', withPending((call) => endpoint.create(call))],
    ]),
    item: itemMethods(endpoint, (call) => call),
    search: searchBy(list),
  }
}

const itemMethods = (endpoint: UserEndpoint | GroupEndpoint, at: (call: ScimCall) => Awaitable<ScimCall>): Methods =>
  new Map<string, Handler>([
    ['GET', (call) => andThen(at(call), (found) => endpoint.get(found))],
    ['PUT', withPending(async (call) => endpoint.replace(await at(call)))],
    ['PATCH', withPending(async (call) => endpoint.patch(await at(call)))],
    [
      'DELETE',
      withPending(async (call) => {
        await endpoint.delete(await at(call))
        return noContent
      }),
    ],
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
    if (call.dryRun !== undefined) {
      // Its answer can have values that users don't see, which are for the client that manages them.
      throw scimError('invalidValue', '/Me offers no dry runs. Nothing was changed.')
    }
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

/** Answers 202 for a change that waits, and a preview for a dry run. */
const withPending =
  (handler: Handler): Handler =>
  async (call) => {
    if (call.dryRun !== undefined) return await previewed(handler, call, call.dryRun)
    try {
      const response = await handler(call)
      return call.notes.pending === undefined ? response : accepted(call.notes.pending)
    } catch (error) {
      if (error instanceof ChangePending) return accepted(error.run)
      throw error
    }
  }

/** A change ends where it would be made; one that ends earlier has nothing to do. */
async function previewed(handler: Handler, call: ScimCall, dryRun: DryRun): Promise<GatewayResponse> {
  try {
    await handler(call)
  } catch (error) {
    if (!(error instanceof ChangePending)) throw error
  }
  return answer(200, dryRun.message)
}

const accepted = (workflowId: string) =>
  answer(202, {
    schemas: ['urn:gatehouse:params:scim:api:messages:1.0:Accepted'],
    detail: 'The change was accepted and waits for a decision.',
    workflowId,
  })
