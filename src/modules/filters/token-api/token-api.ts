import { type TokenUser, tokenPaths } from '#contract/token.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ApiPlace } from '#modules/shared/http/api-description.ts'
import type { ErrorFormat } from '#sdk/filter/error-format.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { tokenApiDescription } from './api-description.ts'
import type { LoadedTokens, TokenLoader } from './token-loader.ts'
import { tokenParameters } from './token-parameters.ts'
import { readTokenSettings, type TokenSettings } from './token-settings.ts'

/** Tokens are kept by nobody on the way. */
const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', pragma: 'no-cache' }

const tokenErrors: ErrorFormat = ({ publicText, code }, requestId) => ({
  headers,
  body: JSON.stringify({ errors: [publicText], code, requestId }),
})

/** What a person's token page shows: read by GET, made anew by POST. */
export default defineFilter<TokenSettings>({
  className: 'filters.TokenApi',
  aliases: ['com.tremolosecurity.scalejs.token.ws.ScaleToken'],
  parameters: tokenParameters,
  answers: true,
  errors: tokenErrors,
  parse: readTokenSettings,
  summarize: ({ kind }) => [{ label: 'tokens', value: kind }],
  create: (settings, host) => {
    const loader = settings.open(host)
    return { handle: (exchange) => answer(exchange, settings, loader) }
  },
})

async function answer(exchange: Exchange, settings: TokenSettings, loader: TokenLoader): Promise<GatewayResponse> {
  const { method } = exchange.request
  const path = pathOf(exchange)
  const reads = method === 'GET' || method === 'HEAD'
  if (path === tokenPaths.config && reads) return json(settings.config, method)
  const document = reads ? tokenApiDescription.document(path, placeOf(exchange)) : undefined
  if (document !== undefined) return json(document, method)
  if (path === tokenPaths.user && reads) return json(user(exchange, settings, await loader.load(exchange)), method)
  if (path === tokenPaths.user && method === 'POST' && loader.renew !== undefined) {
    return json(user(exchange, settings, await loader.renew(exchange)), method)
  }
  if (!Object.values<string>(tokenPaths).includes(path)) {
    throw new GatewayError('NOT_FOUND', `a token page has nothing at "${exchange.pathInfo}"`)
  }
  const allow = path === tokenPaths.user && loader.renew !== undefined ? 'GET, HEAD, POST' : 'GET, HEAD'
  throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow } })
}

/** What follows `/token`, which may be the end of the mount or stand behind it. */
function pathOf({ mount, pathInfo }: Exchange): string {
  const below = mount.endsWith('/token') ? pathInfo : pathInfo.replace(/^\/token(?=\/|$)/, '')
  return mount.endsWith('/token') || below !== pathInfo ? below.slice(1) : ''
}

const placeOf = ({ mount, request }: Exchange): ApiPlace => ({
  origin: request.origin,
  base: mount.replace(/\/token$/, ''),
  prefix: '/token',
})

const user = ({ subject }: Exchange, { displayNameAttribute }: TokenSettings, loaded: LoadedTokens): TokenUser => ({
  displayName: subject.attributes.first(displayNameAttribute) ?? 'Unknown',
  ...loaded,
})

const json = (body: unknown, method: string): GatewayResponse =>
  method === 'HEAD' ? { status: 200, headers } : { status: 200, headers, body: JSON.stringify(body) }
