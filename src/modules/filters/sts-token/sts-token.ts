import { GatewayError } from '#kernel/errors.ts'
import { bearerChallenge, readBearer } from '#protocols/jwt/bearer.ts'
import {
  jwtTokenType,
  longestForm,
  oauthErrors,
  readTokenExchange,
  tokenExchangeAnswer,
} from '#protocols/sts/token-exchange.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/filter/http.ts'
import type { IssuedToken, TokenCall, TokenService } from '#sdk/filter/token-service.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

const parameters = {
  endpoint: text({
    about: 'The name of an endpoint of `sts.endpoints`.',
    required: true,
    reference: 'token endpoint',
  }),
}

/** Exchanges a service-account token for one of the endpoint's: RFC 8693 by POST, and `/user` for old sidecars. */
export default defineFilter({
  className: 'filters.StsToken',
  ...withParameters(parameters),
  answers: true,
  errors: oauthErrors,
  takesForms: true,
  summarize: ({ endpoint }) => [{ label: 'token endpoint', value: endpoint }],
  create: ({ endpoint }, host) => {
    const service = tokenService(host)
    return {
      handle: (asked: Exchange) => {
        const { pathInfo } = asked
        if (pathInfo === '') return exchange(asked, endpoint, service)
        if (pathInfo === '/user') return legacy(asked, endpoint, service)
        throw new GatewayError('NOT_FOUND', `a token endpoint has nothing at "${pathInfo}"`)
      },
    }
  },
})

function tokenService({ tokens }: FilterHost): TokenService {
  if (tokens === undefined) throw new Error('there is no token service: no sts.endpoints are configured')
  return tokens
}

const accountName = /^system:serviceaccount:([^:]+):([^:]+)$/

const callOf = (asked: Exchange, endpoint: string, subjectToken: TokenCall['subjectToken']): TokenCall => ({
  endpoint,
  requestId: asked.request.id,
  remoteAddress: asked.request.remoteAddress,
  subjectToken,
  identified: ({ cluster, username, podName: pod, podUid }) => {
    const [, namespace, serviceAccount] = accountName.exec(username) ?? []
    asked.identify?.({ subject: username, endpoint, workload: { cluster, namespace, serviceAccount, pod, podUid } })
  },
})

/** The form is received before the call waits for its turn, so that a slow client does not block others. */
async function exchange(asked: Exchange, endpoint: string, service: TokenService): Promise<GatewayResponse> {
  const { request } = asked
  let type = jwtTokenType
  const form = request.method === 'POST' ? request.body(longestForm) : undefined
  await form?.catch(() => {})
  const issued = await service.exchange(
    callOf(asked, endpoint, async (audience) => {
      requireMethod(request, 'POST')
      const body = (await form) ?? Buffer.alloc(0)
      const { subjectToken, requestedType } = readTokenExchange(header(request, 'content-type'), body, audience)
      type = requestedType
      return subjectToken
    }),
  )
  const raw = wantsRawToken(header(request, 'accept') ?? '')
  return {
    status: 200,
    headers: {
      ...uncached(issued),
      'content-type': raw ? 'application/jwt' : 'application/json',
    },
    body: raw ? issued.token : tokenExchangeAnswer(issued, type),
  }
}

/** OpenUnison's answer, without the certificate, which could not verify the token. */
async function legacy(asked: Exchange, endpoint: string, service: TokenService): Promise<GatewayResponse> {
  const { request } = asked
  const issued = await service.exchange(
    callOf(asked, endpoint, async () => {
      requireMethod(request, 'GET')
      const bearer = readBearer(request.headers)
      if (bearer.kind === 'token') return bearer.token
      throw new GatewayError('AUTH_REQUIRED', bearer.kind === 'none' ? 'no bearer token was sent' : bearer.reason, {
        keyword: 'invalid_request',
        publicText: 'The service-account token must be sent as Authorization: Bearer.',
        headers: bearerChallenge({ realm: 'sts' }),
      })
    }),
  )
  const { token, expires, workload } = issued
  return {
    status: 200,
    headers: { ...uncached(issued), 'content-type': 'application/json' },
    body: JSON.stringify({ displayName: workload, token: { jwt: token, expires: expires.toISOString() } }),
  }
}

function requireMethod({ method }: GatewayRequest, allow: string): void {
  if (method === allow) return
  throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow }, keyword: 'invalid_request' })
}

const uncached = ({ refreshAfterSeconds }: IssuedToken) => ({
  'cache-control': 'no-store',
  pragma: 'no-cache',
  'refresh-after': String(refreshAfterSeconds),
})

/** The bare token if the client names its type; JSON for all others. */
function wantsRawToken(accept: string): boolean {
  const ranges = accept.split(',', 20).map((range) =>
    range
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/),
  )
  return ranges.some(([type, ...parameters]) => type === 'application/jwt' && !parameters.includes('q=0'))
}
