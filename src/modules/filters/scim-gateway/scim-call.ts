import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { isJsonContent } from '#protocols/scim/media-type.ts'
import { type Projection, parseProjection } from '#protocols/scim/projection.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { scimMediaType } from '#protocols/scim/scim-error.ts'
import type { Exchange } from '#sdk/exchange.ts'
import { type GatewayResponse, header } from '#sdk/http.ts'

/** The largest body of a request. */
export const maxBody = 4 * 1024 * 1024

/** One request to the gateway, routed: what was asked of which resource. */
export interface ScimCall {
  readonly exchange: Exchange
  /** Empty where the request is to the collection. */
  readonly id: string
  /** The gateway's own absolute address. */
  readonly base: string
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE or INVALID_JSON. */
export async function readBody({ exchange }: ScimCall, limit = maxBody): Promise<JsonValue> {
  const { request } = exchange
  const contentType = header(request, 'content-type')
  if (!isJsonContent(contentType)) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${contentType ?? ''}"`, {
      publicText: `The body must be ${scimMediaType} or application/json.`,
    })
  }
  const body = await request.body(limit)
  try {
    return JSON.parse(decoder.decode(body))
  } catch (cause) {
    throw new GatewayError('INVALID_JSON', 'the body does not parse', { cause })
  }
}

export function answer(status: number, body: JsonObject, headers: Record<string, string> = {}): GatewayResponse {
  return {
    status,
    headers: { 'content-type': `${scimMediaType}; charset=utf-8`, ...headers },
    body: JSON.stringify(body),
  }
}

export const noContent: GatewayResponse = { status: 204, headers: {} }

export function projectionOf({ exchange }: ScimCall, schema: ResourceSchema): Projection | undefined {
  const { query } = exchange.request
  return query.size === 0
    ? undefined
    : parseProjection(schema, query.get('attributes'), query.get('excludedAttributes'))
}

export const notFound = (what: string, id: string): GatewayError =>
  new GatewayError('NOT_FOUND', `no ${what} ${JSON.stringify(id)}`, { publicText: `There is no such ${what}.` })

export const notSupported = (text: string): GatewayError =>
  new GatewayError('NOT_SUPPORTED', text, { publicText: text })
