import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import {
  changeEvents,
  type EventPayload,
  eventSubject,
  patchMessage,
  type ResourceChange,
} from '#protocols/scim/security-events.ts'
import type { EventStream } from '#sdk/filter/event-stream.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Router } from './router.ts'
import { notesOf, resourceAddress } from './scim-call.ts'

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
export function withEvents(router: Router, { stream, payload, log }: Announcements): Router {
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
