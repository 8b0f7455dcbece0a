import type { Awaitable } from '#kernel/awaitable.ts'
import { type JsonBounds, parseBoundedJson } from '#kernel/bounded-json.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue, jsonBody } from '#kernel/json.ts'
import { entityTag, parseEntityTags } from '#protocols/scim/entity-tag.ts'
import { type Projection, parseProjection } from '#protocols/scim/projection.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/schema/resource.ts'
import { type AttributeRef, internalName, type ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { quoted, scimError, scimMediaType } from '#protocols/scim/schema/scim-error.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import type { DryRun } from './dry-run.ts'

/** The largest body of a request. */
const maxBody = 4 * 1024 * 1024

/**
 * One routed call of the gateway: a request, or an operation of a bulk request. Handlers read the call and never the
 * request, so that both work the same way.
 */
export interface ScimCall {
  readonly exchange: Exchange
  readonly method: string
  /** Empty for a call of the collection. */
  readonly id: string
  /** The absolute address of the gateway. */
  readonly base: string
  readonly query: URLSearchParams
  /** The headers of these names. */
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
  /** What the call did, for the journal and for events. */
  readonly notes: CallNotes
  /** Set if the call makes no change, and only finds out what it would do. */
  readonly dryRun?: DryRun
  /** Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE or INVALID_JSON. */
  body(limit?: number): Promise<JsonValue>
}

interface CallNotes {
  /** The ids of the workflow runs that were started. */
  readonly workflows: string[]
  /** A run that waits, so that the change is not made yet. */
  pending?: string
  /** The request was a dry run. */
  isDryRun?: boolean
  /** The operations of the request; the journal leaves their values out. */
  operations?: JsonValue
  /** The changes that were made; added by `addChange`. */
  readonly changes: ResourceChange[]
  /** Called at once with each change, for events. */
  onChange?: (change: ResourceChange) => void
}

/** One change of one resource. */
export interface ResourceChange {
  readonly kind: 'create' | 'patch' | 'put' | 'delete'
  readonly resourceType: string
  /** Of a type other than users and groups. */
  readonly endpoint?: string
  readonly id: string
  readonly externalId?: string
  /** The new ETag, if it is known. */
  readonly version?: string
  /** Names of the attributes that changed, as in the schema (an extension's with its URN and a colon); none for delete. */
  readonly attributes: readonly string[]
  /** Those of them that lost their value. */
  readonly cleared?: readonly string[]
  /** The users and groups that joined and left a patched group; absent if some changes still wait. */
  readonly members?: { readonly added: readonly ChangedMember[]; readonly removed: readonly ChangedMember[] }
  /** `active` before and after the change, if known. */
  readonly active?: { readonly before?: boolean; readonly after?: boolean }
}

interface ChangedMember {
  readonly type: 'User' | 'Group'
  readonly id: string
}

/** Answers a request of a client. */
export type Router = (exchange: Exchange) => Awaitable<GatewayResponse>
export type Handler = (call: ScimCall) => Awaitable<GatewayResponse>
export type Methods = ReadonlyMap<string, Handler>

/** The methods of a path, and the id in it. */
export interface Route {
  readonly methods: Methods
  /** Empty if the path has no id. */
  readonly id: string
}

const notes = new WeakMap<Exchange, CallNotes>()

/** The notes of a request, which all calls in it share. */
export function notesOf(exchange: Exchange): CallNotes {
  let found = notes.get(exchange)
  if (found === undefined) {
    found = { workflows: [], changes: [] }
    notes.set(exchange, found)
  }
  return found
}

/** `mediaType` matches a type that the client uses besides those of SCIM. */
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

const jsonTypes = new Set([scimMediaType, 'application/json'])

/** `application/scim+json`, `application/json` or a type that `other` matches, in no other charset than UTF-8. */
export function isJsonContent(contentType: string | undefined, other?: RegExp): boolean {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  if (!isJson(type.trim(), other)) return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=')
    return name.trim() !== 'charset' || ['utf-8', '"utf-8"', 'utf8'].includes(value.trim())
  })
}

const isJson = (type: string, other: RegExp | undefined): boolean => jsonTypes.has(type) || other?.test(type) === true

/** Whether the Accept header, if any, allows a JSON response. */
export function acceptsJson(accept: string | undefined, other?: RegExp): boolean {
  if (accept === undefined || accept.trim() === '') return true
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
      const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
      return !refused && (type === '*/*' || type === 'application/*' || isJson(type, other))
    })
}

/** Room for the largest documented requests: 100,000 members of a group, and 1,000 operations of a bulk request. */
export const scimBounds: JsonBounds = { depth: 64, members: 1_000, elements: 150_000, values: 500_000 }

/** Throws INVALID_JSON if it is not UTF-8, not JSON, or exceeds the bounds. */
export const parseBody = (bytes: Buffer): JsonValue => parseBoundedJson(bytes, scimBounds).value

export function projectionOf({ query }: ScimCall, schema: ResourceSchema): Projection | undefined {
  return parseProjection(schema, query.get('attributes'), query.get('excludedAttributes'))
}

/**
 * Checks If-Match and If-None-Match before a change. Returns the version that the target must still have when the change
 * is written, if the client sent one. Throws VERSION_MISMATCH (412), or invalidValue for a malformed header.
 */
export function requireMatch(call: ScimCall, version: string | undefined): string | undefined {
  const wanted = call.ifMatch === undefined ? undefined : parseEntityTags(call.ifMatch, 'If-Match')
  const unwanted = call.ifNoneMatch === undefined ? undefined : parseEntityTags(call.ifNoneMatch, 'If-None-Match')
  if (wanted?.matches(version) === false || unwanted?.matches(version) === true) {
    throw new GatewayError('VERSION_MISMATCH', `the resource has version ${version ?? 'none'}`, {
      headers: etagHeader(version),
    })
  }
  return wanted === undefined || wanted.any ? undefined : version
}

/**
 * To be called as soon as a target has made a change, while the resource is still locked: receivers get the events in the
 * order of these calls. A dry run makes none.
 */
export function addChange({ notes, exchange, dryRun }: ScimCall, change: ResourceChange): void {
  if (dryRun !== undefined) return
  notes.changes.push(change)
  notesOf(exchange).onChange?.(change)
}

/** The externalId and the ETag of a changed resource, for its event. */
export const describeChange = ({ externalId }: JsonObject, version: string | undefined) => ({
  ...(typeof externalId === 'string' ? { externalId } : {}),
  ...(version === undefined ? {} : { version: entityTag(version) }),
})

/** The names of those attributes that have no value in the resource. */
export const namesWithoutValue = (resource: JsonObject, refs: readonly AttributeRef[]): string[] =>
  refs.filter((ref) => readAttribute(resource, ref) === undefined).map(internalName)

export function answer(status: number, body: JsonObject, headers: Record<string, string> = {}): GatewayResponse {
  return {
    status,
    headers: { 'content-type': `${scimMediaType}; charset=utf-8`, ...headers },
    body: jsonBody(body),
  }
}

export const noContent: GatewayResponse = { status: 204, headers: {} }

/** A resource with its address and ETag; 304 for a GET if the client already has this version. */
export function resourceAnswer(
  call: ScimCall,
  status: 200 | 201,
  resource: ScimResource,
  version: string | undefined,
  projection: Projection | undefined,
): GatewayResponse {
  const unchanged = call.method === 'GET' || call.method === 'HEAD' ? notModified(call, version) : undefined
  if (unchanged !== undefined) return unchanged
  const { meta } = resource
  const location = isJsonObject(meta) && typeof meta['location'] === 'string' ? { location: meta['location'] } : {}
  const shown = projection === undefined ? resource : projection.apply(resource)
  return answer(status, shown, { ...location, ...etagHeader(version) })
}

/** 304 if If-None-Match names this version. */
export function notModified(call: ScimCall, version: string | undefined): GatewayResponse | undefined {
  if (call.ifNoneMatch === undefined) return undefined
  if (!parseEntityTags(call.ifNoneMatch, 'If-None-Match').matches(version)) return undefined
  return { status: 304, headers: etagHeader(version) }
}

export const etagHeader = (version: string | undefined): Record<string, string> =>
  version === undefined ? {} : { etag: entityTag(version) }

/** The attributes that clients find users and groups by; a type has its own. */
const names = new Map([
  ['user', 'userName'],
  ['group', 'displayName'],
])

export const notFound = (what: string, id: string, name = names.get(what)): GatewayError => {
  const remedy = name === undefined ? 'Read the list.' : `It may have been deleted; search for it by ${name}.`
  const publicText = `There is no ${what} with id ${quoted(id)}. ${remedy}`
  return new GatewayError('NOT_FOUND', `no ${what} ${JSON.stringify(id)}`, { publicText })
}

export const notSupported = (text: string): GatewayError =>
  new GatewayError('NOT_SUPPORTED', text, { publicText: text })

/** The longest encoded id whose address fits into a request. */
const maxEncodedId = 6000

/**
 * A login or group name can be the id of the resource, and is then part of its address, from which clients remove `.` and
 * `..`. Throws invalidValue.
 */
export function requireAddress(attribute: string, id: string): void {
  if (['.', '..', '.search'].includes(id)) {
    throw scimError('invalidValue', `${attribute}: ${quoted(id)} is reserved in addresses. Choose another one.`)
  }
  const { length } = encodeURIComponent(id)
  if (length <= maxEncodedId) return
  const limit = `its address has ${length} characters, and ${maxEncodedId} is the most`
  throw scimError('invalidValue', `${attribute} is too long: ${limit}. Choose a shorter one.`)
}
