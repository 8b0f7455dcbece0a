import { GatewayError } from '#kernel/errors.ts'
import { acceptsJson } from '#protocols/scim/message.ts'
import { scimMediaType } from '#protocols/scim/scim-error.ts'
import type { Exchange } from '#sdk/exchange.ts'
import { type GatewayResponse, header } from '#sdk/http.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { afterWorkflow } from './read-failures.ts'
import type { Methods } from './route.ts'
import { createRoutes } from './routes.ts'
import { callOf } from './scim-call.ts'

export type Router = (exchange: Exchange) => Promise<GatewayResponse>

/** Throws NOT_FOUND, METHOD_NOT_ALLOWED and NOT_ACCEPTABLE before any endpoint is reached. */
export function createRouter(parts: GatewayParts): Router {
  const find = createRoutes(parts)
  const { mediaType } = parts.config.client
  return async (exchange) => {
    const { request, pathInfo } = exchange
    const route = find(pathInfo)
    if (route === undefined) throw new GatewayError('NOT_FOUND', `nothing at ${pathInfo}`)
    if (request.method === 'OPTIONS') return { status: 204, headers: { allow: allowed(route.methods) } }
    const head = request.method === 'HEAD'
    const handler = route.methods.get(head ? 'GET' : request.method)
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
    return head ? withoutBody(response) : response
  }
}

/** A length that is told is that of the body that GET would have (RFC 9110 8.6). */
function withoutBody({ status, headers, body }: GatewayResponse): GatewayResponse {
  const length = typeof body === 'string' ? { 'content-length': String(Buffer.byteLength(body)) } : {}
  return { status, headers: { ...headers, ...length } }
}

const allowed = (methods: Methods): string =>
  [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
