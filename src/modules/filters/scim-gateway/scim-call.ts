import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { isJsonContent, parseBody } from '#protocols/scim/message.ts'
import { type Projection, parseProjection } from '#protocols/scim/projection.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { quoted, scimMediaType } from '#protocols/scim/scim-error.ts'
import type { ResourceChange } from '#protocols/scim/security-events.ts'
import type { Exchange } from '#sdk/exchange.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http.ts'

export type { ResourceChange } from '#protocols/scim/security-events.ts'

/** The largest body of a request. */
export const maxBody = 4 * 1024 * 1024

/**
 * One thing asked of the gateway, routed: by a request, or by an operation inside one. Handlers read the call and never
 * the request, so that both come the same way.
 */
export interface ScimCall {
  /** Who asks, and in which request. */
  readonly exchange: Exchange
  readonly method: string
  /** Empty where the call is to the collection. */
  readonly id: string
  /** The gateway's own absolute address. */
  readonly base: string
  readonly query: URLSearchParams
  /** As in the headers of these names. */
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
  /** What the call did, filled in on the way, for the journal. */
  readonly notes: CallNotes
  /** Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE or INVALID_JSON. */
  body(limit?: number): Promise<JsonValue>
}

export interface CallNotes {
  /** Ids of the workflow runs that were started. */
  readonly workflows: string[]
  /** A run that waits, so that what was asked for is not done yet. */
  pending?: string
  /** The change as it was understood; values are left out by whoever keeps it. */
  operations?: JsonValue
  /** What was really done to resources; added by `addChange`. */
  readonly changes: ResourceChange[]
  /** Called with each change at once, for events. */
  onChange?: (change: ResourceChange) => void
}

const notes = new WeakMap<Exchange, CallNotes>()

/** The notes of a request: one for all calls that it leads to, found again by whoever looks at it as a whole. */
export function notesOf(exchange: Exchange): CallNotes {
  let found = notes.get(exchange)
  if (found === undefined) {
    found = { workflows: [], changes: [] }
    notes.set(exchange, found)
  }
  return found
}

/**
 * To be called as soon as a target has taken a change, while the resource is still locked: the order of these calls is
 * the order in which receivers are told.
 */
export function addChange({ notes, exchange }: ScimCall, change: ResourceChange): void {
  notes.changes.push(change)
  notesOf(exchange).onChange?.(change)
}

/** A call as the request makes it. `mediaType` is one that the client uses beside those of SCIM. */
export function callOf(exchange: Exchange, id: string, mediaType?: RegExp): ScimCall {
  const { request } = exchange
  return {
    exchange,
    method: request.method,
    id,
    base: request.origin + exchange.mount,
    query: request.query,
    ifMatch: header(request, 'if-match'),
    ifNoneMatch: header(request, 'if-none-match'),
    notes: notesOf(exchange),
    body: (limit = maxBody) => readBody(request, limit, mediaType),
  }
}

async function readBody(request: GatewayRequest, limit: number, mediaType: RegExp | undefined): Promise<JsonValue> {
  const contentType = header(request, 'content-type')
  if (!isJsonContent(contentType, mediaType)) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${contentType ?? ''}"`, {
      publicText: `Content-Type: ${quoted(contentType ?? '')} is not supported. Send ${scimMediaType} or application/json, in UTF-8.`,
    })
  }
  return parseBody(await request.body(limit))
}

export function answer(status: number, body: JsonObject, headers: Record<string, string> = {}): GatewayResponse {
  return {
    status,
    headers: { 'content-type': `${scimMediaType}; charset=utf-8`, ...headers },
    body: JSON.stringify(body),
  }
}

export const noContent: GatewayResponse = { status: 204, headers: {} }

export function projectionOf({ query }: ScimCall, schema: ResourceSchema): Projection | undefined {
  return parseProjection(schema, query.get('attributes'), query.get('excludedAttributes'))
}

export const notFound = (what: string, id: string): GatewayError => {
  const name = what === 'user' ? 'userName' : what === 'group' ? 'displayName' : undefined
  const remedy = name === undefined ? 'Read the list.' : `It may have been deleted; search for it by ${name}.`
  const publicText = `There is no ${what} with id ${quoted(id)}. ${remedy}`
  return new GatewayError('NOT_FOUND', `no ${what} ${JSON.stringify(id)}`, { publicText })
}

export const notSupported = (text: string): GatewayError =>
  new GatewayError('NOT_SUPPORTED', text, { publicText: text })
