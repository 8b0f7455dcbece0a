import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'

export interface CrossOrigin {
  /** Header names that a page may send beside Authorization. */
  readonly headers: readonly string[]
  /** Origins of such pages; `*` is any. */
  readonly origins: readonly string[]
}

const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const exposed = 'ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id'
const preflightSeconds = '600'

/** Whether this can be an entry of `cors-headers`: a header name (RFC 9110 5.6.2). `*` is none. */
export const isHeaderName = (text: string): boolean => text !== '*' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text)

/** Whether this can be an entry of `cors-origins`: `*`, or scheme, host and port as a browser writes them. */
export const isOrigin = (text: string): boolean =>
  text === '*' || (URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text)

/** Headers that let a page of the request's origin read the answer. Credentials such as cookies are never allowed. */
export function crossOriginHeaders(request: GatewayRequest, settings: CrossOrigin): Readonly<Record<string, string>> {
  if (settings.origins.includes('*')) {
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed }
  }
  const origin = header(request, 'origin')
  if (origin === undefined || !settings.origins.includes(origin)) return { vary: 'Origin' }
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed, vary: 'Origin' }
}

/** The answer to a browser's question before the request proper; undefined for other requests and other origins. */
export function answerPreflight(request: GatewayRequest, settings: CrossOrigin): GatewayResponse | undefined {
  if (request.method !== 'OPTIONS' || header(request, 'access-control-request-method') === undefined) return undefined
  const origin = header(request, 'origin')
  if (origin === undefined || !settings.origins.some((allowed) => allowed === '*' || allowed === origin))
    return undefined
  return {
    status: 204,
    headers: {
      'access-control-allow-origin': settings.origins.includes('*') ? '*' : origin,
      'access-control-allow-methods': methods,
      'access-control-allow-headers': ['Authorization', ...settings.headers].join(', '),
      'access-control-max-age': preflightSeconds,
      vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
    },
  }
}
