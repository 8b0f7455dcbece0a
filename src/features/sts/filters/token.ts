import * as z from 'zod'
import type { StsHost } from '#features/sts/host.ts'
import type { IssuedToken, TokenCall } from '#features/sts/service/token-call.ts'
import type { TokenIssuing } from '#features/sts/service/token-issuing.ts'
import { GatewayError } from '#kernel/errors.ts'
import { bearerChallenge, readBearer } from '#protocols/jwt/bearer.ts'
import {
  jwtTokenType,
  longestForm,
  oauthErrors,
  readTokenExchange,
  tokenExchangeAnswer,
  tokenExchangeGrant,
} from '#protocols/sts/token-exchange.ts'
import { DescribedApi, placeAtSegment } from '#sdk/api/api-description.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

const parameters = {
  endpoint: text({
    about: 'The name of an endpoint of `sts.endpoints`.',
    required: true,
    reference: 'token endpoint',
  }),
}

const keyPath = /^\/key\/([\w-]{1,128})$/

/**
 * Exchanges a service-account token for one of the endpoint's: RFC 8693 by POST, and `/user` for old sidecars. At
 * `/key/KID` sidecars learn that the key of their token was revoked.
 */
export default defineFilter({
  className: 'filters.StsToken',
  ...withParameters(parameters),
  answers: true,
  errors: oauthErrors,
  takesForms: true,
  summarize: ({ endpoint }) => [{ label: 'token endpoint', value: endpoint }],
  api: () => tokenExchangeApi.served(placeAtSegment, { hasOwnCredentials: true }),
  create: ({ endpoint }, host: StsHost) => {
    const service = tokenService(host)
    return {
      handle: (asked: Exchange) => {
        const { pathInfo } = asked
        if (pathInfo === '') return exchange(asked, endpoint, service)
        if (pathInfo === '/user') return legacy(asked, endpoint, service)
        const kid = keyPath.exec(pathInfo)?.[1]
        if (kid !== undefined) return keyState(asked, endpoint, kid, service)
        throw new GatewayError('NOT_FOUND', `a token endpoint has nothing at "${pathInfo}"`)
      },
    }
  },
})

function tokenService({ tokens }: StsHost): TokenIssuing {
  if (tokens === undefined) throw new Error('there is no token service: no sts.endpoints are configured')
  return tokens
}

const accountName = /^system:serviceaccount:([^:]+):([^:]+)$/

const callOf = (asked: Exchange, endpoint: string, subjectToken: TokenCall['subjectToken']): TokenCall => ({
  endpoint,
  requestId: asked.request.id,
  remoteAddress: asked.request.remoteAddress,
  subjectToken,
  identified: ({ source, username, podName: pod, podUid }) => {
    const [, namespace, serviceAccount] = accountName.exec(username) ?? []
    asked.identify?.({
      subject: username,
      endpoint,
      workload: { cluster: source, namespace, serviceAccount, pod, podUid },
    })
  },
})

/** The form is received before the call waits for its turn, so that a slow client does not block others. */
async function exchange(asked: Exchange, endpoint: string, service: TokenIssuing): Promise<GatewayResponse> {
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
async function legacy(asked: Exchange, endpoint: string, service: TokenIssuing): Promise<GatewayResponse> {
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

/** Public, as the documents are. */
async function keyState(
  { request }: Exchange,
  endpoint: string,
  kid: string,
  service: TokenIssuing,
): Promise<GatewayResponse> {
  requireMethod(request, 'GET')
  return { status: (await service.isRevoked(endpoint, kid)) ? 410 : 204, headers: { 'cache-control': 'no-store' } }
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

export const tokenExchangeApi = new DescribedApi({
  title: 'Token exchange API',
  version: '1.0.0',
  answers: {
    IssuedToken: z.object({
      access_token: z.string().describe('The token of the endpoint'),
      issued_token_type: z.string(),
      token_type: z.enum(['N_A', 'Bearer']),
      expires_in: z.int().describe('Seconds'),
    }),
    SidecarToken: z.object({
      displayName: z.string().describe('The workload'),
      token: z.object({ jwt: z.string(), expires: z.string() }),
    }),
    OAuthError: z.object({
      error: z.string(),
      error_description: z.string().optional(),
      subject_token_error: z.string().describe('Present if the subject token was not accepted').optional(),
    }),
  },
  bodies: {
    TokenExchange: z.object({
      grant_type: z.literal(tokenExchangeGrant),
      subject_token: z.string().describe('The token of the service account'),
      subject_token_type: z.string().meta({ examples: [jwtTokenType] }),
      requested_token_type: z
        .string()
        .meta({ examples: [jwtTokenType] })
        .optional(),
      audience: z.string().describe('The audience of the endpoint, which is also the default').optional(),
      resource: z.string().describe('The same').optional(),
    }),
  },
  failure: { description: 'What is wrong', schema: 'OAuthError' },
  operations: {
    exchangeToken: {
      route: 'POST',
      summary: 'Exchanges the token of a service account for one of this endpoint (RFC 8693)',
      description:
        'The token in the form is the credential. Accept: application/jwt returns the token alone, and the header Refresh-After says after how many seconds to get the next one.',
      body: 'TokenExchange',
      bodyType: 'application/x-www-form-urlencoded',
      answer: 'IssuedToken',
      failures: { '400': 'The form or the token is not accepted', '403': 'The rules of the endpoint deny it' },
    },
    getSidecarToken: {
      route: 'GET /user',
      summary: 'The same for sidecars of OpenUnison, with the token of the service account as bearer token',
      answer: 'SidecarToken',
    },
    getKeyState: {
      route: 'GET /key/{kid}',
      summary: 'Whether tokens of this key must be replaced, because it was revoked',
      answers: {
        '204': { description: 'It was not revoked, or never was a key of this endpoint' },
        '410': { description: 'It was revoked' },
      },
    },
  },
})
