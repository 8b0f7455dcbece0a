import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, type GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { isSecretName } from '#kernel/redaction.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { errorBody, scimMediaType } from '#protocols/scim/scim-error.ts'
import {
  changeEvents,
  type EventPayload,
  eventSubject,
  patchMessage,
  type ResourceChange,
} from '#protocols/scim/security-events.ts'
import type { EventStream } from '#sdk/filter/event-stream.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayRequest } from '#sdk/filter/http.ts'
import type { Journal } from '#sdk/filter/journal.ts'
import { DirectoryLookups } from './directory-lookups.ts'
import { type GatewayConfig, parseGatewayConfig, summarize } from './gateway-config.ts'
import { GroupMapping } from './group-mapping.ts'
import { type Lookups, withReadFailures } from './lookups.ts'
import { Managers } from './managers.ts'
import { parameterTable } from './parameter-table.ts'
import { createRouter, type Router } from './router.ts'
import { notesOf, resourceAddress } from './scim-call.ts'
import { GatewayStorage, gatewayFlow } from './stored-schema.ts'
import { targetLookups } from './target-lookups.ts'
import { UserMapping } from './user-mapping.ts'
import { attributeMarks, type DeletedMarks, storedMarks, visibleLookups } from './visible-lookups.ts'

/** Changes that may wait or run at the same time in one gateway. */
const maxChanges = 4096

/** SCIM 2.0 in front of workflows: changes run a workflow, reads come from the target. */
export default defineFilter({
  className: 'filters.ScimGateway',
  aliases: ['com.tremolosecurity.proxy.filters.scim.Scim'],
  parameters: parameterTable,
  answers: true,
  errors: (error) => ({
    headers: { 'content-type': `${scimMediaType}; charset=utf-8` },
    body: JSON.stringify(errorBody(error)),
  }),
  parse: parseGatewayConfig,
  summarize,
  flow: gatewayFlow,
  create: async (config, host) => {
    const { value: router, scope } = await buildScoped(async (opened) => {
      const toInternal = opened.own(await config.toInternal.create(host))
      const toScim = opened.own(await config.toScim.create(host))
      const stored = withReadFailures(createLookups(config, host))
      const marks = await openMarks(config, host, opened)
      // Stored values that do not fit are logged once, by the mapping that answers clients.
      const silent = new UserMapping(config, { toScim, toInternal }, silentLogger, stored)
      const lookups = visibleLookups(stored, marks, config, silent)
      const router = createRouter({
        config,
        lookups,
        storage: new GatewayStorage(config, lookups, host),
        users: new UserMapping(config, { toScim, toInternal }, host.log, lookups),
        groups: new GroupMapping(config, lookups, host.log),
        managers: new Managers(config, lookups, silent, host.log),
        workflows: host.workflows,
        queue: new KeyedQueue({ maxPending: maxChanges }),
        log: host.log,
      })
      return withEventsAndJournal(router, config, host, opened)
    })
    return { handle: (exchange) => router(exchange), close: () => scope.close() }
  },
})

function createLookups(config: GatewayConfig, host: FilterHost): Lookups {
  const { lookup } = config
  if (lookup.kind === 'directory') return new DirectoryLookups(host.directory, lookup.base, config)
  return targetLookups(host.targets.get(lookup.name), config)
}

/** Stored under what users are looked up in, so that all gateways on one target share the marks. */
async function openMarks(config: GatewayConfig, host: FilterHost, opened: Scope): Promise<DeletedMarks> {
  const { lookup, users } = config
  if (users.deletedAttribute !== undefined) return attributeMarks(users.deletedAttribute, host.clock)
  const place = lookup.kind === 'target' ? `target/${lookup.name}` : `directory/${lookup.base}`
  return storedMarks(opened.own(await host.openUserDirectory({ name: `scim-deleted/${place}` })), host.clock)
}

/** Events are inside the journal, so that the journal shows if they failed. */
async function withEventsAndJournal(
  router: Router,
  config: GatewayConfig,
  host: FilterHost,
  opened: Scope,
): Promise<Router> {
  const { events, journal } = config
  let handler = router
  if (events !== undefined) {
    // Read or created now, so that an unusable key stops the start and not a delivery.
    await host.keys.signingKey(events.stream.key)
    const stream = opened.own(host.openEventStream(events.stream))
    handler = withEvents(handler, { stream, payload: events.payload, log: host.log })
  }
  if (journal === 0) return handler
  return withJournal(handler, opened.own(host.openJournal({ name: host.name, keep: journal })), host.clock)
}

/** A larger resource or patch is sent as a notice. */
const maxData = 64 * 1024

interface Announcements {
  readonly stream: EventStream
  readonly payload: EventPayload
  readonly log: Logger
}

/**
 * Appends an event to the stream for each change of a call, and answers the call only then: after the answer, receivers
 * are certain to get the event. A call that failed part way has events for what it did.
 */
function withEvents(router: Router, { stream, payload, log }: Announcements): Router {
  // Events of one resource are stored in the order of its changes.
  const order = new KeyedQueue()
  const store = async (exchange: Exchange, change: ResourceChange): Promise<void> => {
    const data = payload === 'full' ? await readData(router, exchange, change) : undefined
    const transaction = exchange.request.id
    await stream.append([{ transaction, subject: eventSubject(change), events: changeEvents(change, data) }])
  }
  return async (exchange) => {
    const failures: unknown[] = []
    const storing: Promise<unknown>[] = []
    notesOf(exchange).onChange = (change) => {
      const key = `${change.resourceType} ${change.id.toLowerCase()}`
      storing.push(order.run(key, () => store(exchange, change)).catch((error: unknown) => failures.push(error)))
    }
    const [answer] = await Promise.allSettled([router(exchange)])
    await Promise.all(storing)
    if (failures.length > 0) {
      const { id: requestId } = exchange.request
      const fields = { requestId, events: failures.length, err: failures[0] }
      log.error('changes were made, but their events could not be stored', fields)
    }
    if (answer.status === 'rejected') throw answer.reason
    if (failures.length > 0) throw failures[0]
    return answer.value
  }
}

/** The patch, or the resource as a client reads it. For a patch of a group, its members are not read. */
async function readData(router: Router, exchange: Exchange, change: ResourceChange): Promise<JsonObject | undefined> {
  const { kind, resourceType, attributes } = change
  if (kind === 'delete') return undefined
  if (kind !== 'patch') return readResource(router, exchange, change, '')
  const isGroup = resourceType === 'Group'
  const onlyMembers = isGroup && attributes.every((name) => name === 'members')
  const resource = onlyMembers
    ? {}
    : await readResource(router, exchange, change, isGroup ? 'excludedAttributes=members' : '')
  const message = resource && patchMessage(change, resource)
  return message !== undefined && JSON.stringify(message).length <= maxData ? message : undefined
}

async function readResource(
  router: Router,
  exchange: Exchange,
  { resourceType, id }: ResourceChange,
  query: string,
): Promise<JsonObject | undefined> {
  const pathInfo = resourceAddress('', resourceType, id)
  const { id: requestId, origin, host, remoteAddress, signal } = exchange.request
  const request = {
    id: requestId,
    method: 'GET',
    origin,
    host,
    path: `${exchange.mount}${pathInfo}`,
    query: new URLSearchParams(query),
    headers: {},
    remoteAddress,
    signal,
    body: async () => Buffer.alloc(0),
  }
  try {
    const { body } = await router({ ...exchange, request, pathInfo })
    if (typeof body !== 'string' || body.length > maxData) return undefined
    const data: unknown = JSON.parse(body)
    return isJsonObject(data) ? data : undefined
  } catch {
    // The resource was deleted or cannot be read now; the event is sent without its data.
    return undefined
  }
}

/** The most workflow runs in one entry. */
const maxRuns = 100

/** Adds an entry for every call of the gateway, whether it succeeds or fails. The values that clients send are left out. */
function withJournal(router: Router, journal: Journal, clock: Clock): Router {
  return async (exchange) => {
    const time = clock()
    const began = performance.now()
    const add = (status: number, error?: GatewayError): void => {
      journal.add({ time, ...callFields(exchange), status, ...errorFields(error), millis: performance.now() - began })
    }
    try {
      const response = await router(exchange)
      add(response.status)
      return response
    } catch (thrown) {
      const error = asGatewayError(thrown)
      add(error.status, error)
      throw error
    }
  }
}

function callFields(exchange: Exchange) {
  const { request, subject } = exchange
  const { workflows, operations } = notesOf(exchange)
  return {
    requestId: request.id,
    caller: subject.uid,
    method: request.method,
    path: shownPath(request),
    workflows: workflows.slice(0, maxRuns),
    ...(operations === undefined ? {} : { operations: shownOperations(operations) }),
  }
}

function errorFields(error: GatewayError | undefined) {
  if (error === undefined) return {}
  const { scimType } = errorBody(error)
  return { error: shownError(error.publicText), ...(typeof scimType === 'string' ? { keyword: scimType } : {}) }
}

const maxPath = 1000
const maxError = 500
const maxOperations = 50
const maxName = 200
const hidden = '[redacted]'

/** Query parameters whose values contain no data. */
const plainParameters = new Set([
  'attributes',
  'excludedattributes',
  'sortby',
  'sortorder',
  'startindex',
  'count',
  'cursor',
])

/**
 * The path with its query. The values of a filter stay, since without them an empty result cannot be explained. A filter
 * that mentions a password or token is hidden as a whole, and so are the values of parameters that SCIM does not define.
 */
export function shownPath({ path, query }: Pick<GatewayRequest, 'path' | 'query'>): string {
  if (query.size === 0) return cut(path, maxPath)
  const shown = Array.from(query, ([name, value]) => {
    const text = value === '' || isPlain(name, value) ? value : hidden
    return text === '' ? cut(name, maxName) : `${cut(name, maxName)}=${text}`
  })
  return cut(`${path}?${shown.join('&')}`, maxPath)
}

function isPlain(name: string, value: string): boolean {
  const lower = name.toLowerCase()
  return plainParameters.has(lower) || (lower === 'filter' && !isSecretName(value.slice(0, maxPath)))
}

export const shownError = (text: string): string => cut(text, maxError)

/** The operations, paths and counts of a request. Nothing else, so that no endpoint records a value by mistake. */
export function shownOperations(operations: JsonValue): JsonValue {
  const list = Array.isArray(operations) ? operations : [operations]
  const shown = list.slice(0, maxOperations).map(shownOperation)
  return list.length > maxOperations ? [...shown, { more: list.length - maxOperations }] : shown
}

function shownOperation(operation: JsonValue): JsonObject {
  if (!isJsonObject(operation)) return {}
  const { op, method, path, count } = operation
  return {
    ...(typeof op === 'string' ? { op: cut(op, maxName) } : {}),
    ...(typeof method === 'string' ? { method: cut(method, maxName) } : {}),
    ...(typeof path === 'string' ? { path: withoutLiterals(cut(path, maxName)) } : {}),
    ...(typeof count === 'number' ? { count } : {}),
  }
}

/** A filter in a path keeps its attributes and operators. An unclosed quote hides the rest. */
const withoutLiterals = (path: string): string => path.replace(/"(?:\\.|[^"\\])*(?:"|$)/g, '?')

const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text)
