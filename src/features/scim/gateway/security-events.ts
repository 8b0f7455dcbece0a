import type { SecurityEvent } from '#features/scim/events/event-stream.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import { patchSchema } from '#protocols/scim/patch/parse-patch.ts'
import { addressAt } from '#protocols/scim/resource-address.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { notesOf, type ResourceChange, type Router } from './scim-call.ts'

export type EventPayload = 'notice' | 'full'

/** A larger resource or patch is sent as a notice. */
const maxData = 64 * 1024

interface Announcements {
  /** Resolves when the events are durable. */
  readonly append: (events: readonly SecurityEvent[]) => Promise<void>
  readonly payload: EventPayload
  readonly log: Logger
}

/**
 * Appends an event to the stream for each change of a call, and answers the call only then: after the answer, receivers
 * are certain to get the event. A call that failed part way has events for what it did.
 */
export function withEvents(router: Router, { append, payload, log }: Announcements): Router {
  // Events of one resource are stored in the order of its changes.
  const order = new KeyedQueue()
  const store = async (exchange: Exchange, change: ResourceChange): Promise<void> => {
    const data = payload === 'full' ? await readData(router, exchange, change) : undefined
    const transaction = exchange.request.id
    await append([{ transaction, subject: eventSubject(change), events: changeEvents(change, data) }])
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
  { resourceType, endpoint = endpointOf(resourceType), id }: ResourceChange,
  query: string,
): Promise<JsonObject | undefined> {
  const pathInfo = addressAt('', endpoint, id)
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
    readBody: async () => {},
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

const prefix = 'urn:ietf:params:scim:event:prov'
const activate = `${prefix}:activate`
const deactivate = `${prefix}:deactivate`

/** RFC 9967 4: the events of a service with this payload. With `full`, some patches are sent as a notice. */
export const eventUris = (payload: EventPayload): string[] => [
  ...['create', 'patch', 'put'].map((kind) => `${prefix}:${kind}:${payload}`),
  ...(payload === 'full' ? [`${prefix}:patch:notice`] : []),
  `${prefix}:delete`,
  activate,
  deactivate,
]

const endpointOf = (resourceType: string): string => `/${resourceType}s`

/** RFC 9967 2.1: the path below the service's URL, and the owner's name of the resource. */
export const eventSubject = ({
  resourceType,
  endpoint = endpointOf(resourceType),
  id,
  externalId,
}: ResourceChange): JsonObject => ({
  format: 'scim',
  uri: `${endpoint}/${encodeURIComponent(id)}`,
  ...(externalId === undefined ? {} : { externalId }),
})

/**
 * RFC 9967 2.4: the events of a change with their payloads. With `data` (for a patch the patch, otherwise the resource
 * as a client reads it) they are full; without, they have the names of changed attributes and no values. A deactivation is
 * in the same token as the change that caused it.
 */
export function changeEvents(change: ResourceChange, data?: JsonObject): JsonObject {
  const { kind, attributes, version, active } = change
  if (kind === 'delete') return { [`${prefix}:delete`]: {} }
  const payload = data === undefined ? { attributes: [...attributes] } : { data }
  const uri = `${prefix}:${kind}:${data === undefined ? 'notice' : 'full'}`
  return {
    [uri]: { ...payload, ...(version === undefined ? {} : { version }) },
    ...(active?.after === true && active.before === false ? { [activate]: {} } : {}),
    ...(active?.after === false && active.before !== false && kind !== 'create' ? { [deactivate]: {} } : {}),
  }
}

/**
 * RFC 9967 2.4.2, figure 6: a patch that brings any copy to the current state. It has the current value of each
 * changed attribute, and the members that joined and left. Undefined if a changed value is never returned, or if
 * not every change of members was made.
 */
export function patchMessage(change: ResourceChange, resource: JsonObject): JsonObject | undefined {
  const { attributes, cleared = [], members, resourceType } = change
  const operations: JsonObject[] = []
  for (const path of attributes) {
    if (resourceType === 'Group' && path === 'members') {
      if (members === undefined) return undefined
      continue
    }
    const value = valueAt(resource, path)
    if (value === undefined && !cleared.includes(path)) return undefined
    operations.push(value === undefined ? { op: 'remove', path } : { op: 'replace', path, value })
  }
  const { added = [], removed = [] } = members ?? {}
  for (const { id } of removed) operations.push({ op: 'remove', path: `members[value eq ${JSON.stringify(id)}]` })
  if (added.length > 0) {
    operations.push({ op: 'add', path: 'members', value: added.map(({ id, type }) => ({ value: id, type })) })
  }
  return { schemas: [patchSchema], Operations: operations }
}

/** The attribute that a name of `attributes` is about; an extension's is inside the object of its URN. */
function valueAt(resource: JsonObject, name: string): JsonValue | undefined {
  const colon = name.lastIndexOf(':')
  if (colon < 0) return resource[name]
  const extension = resource[name.slice(0, colon)]
  return isJsonObject(extension) ? extension[name.slice(colon + 1)] : undefined
}
