import type { EndpointName } from '#config/configuration/token-endpoint.ts'
import type { PortalHost } from '#features/portal/host.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readBearer } from '#protocols/jwt/bearer.ts'
import type { TokenLoader } from './kubectl-loader.ts'

/** A token of the token service for the workload whose token authenticated the request. The endpoint decides and audits. */
export function stsLoader(name: EndpointName, { tokens }: Pick<PortalHost, 'tokens'>): TokenLoader {
  const endpoint = tokens?.endpointOf(name)
  if (tokens === undefined || endpoint === undefined) {
    throw new Error(
      `the token service has no endpoint with the issuer "${name.issuer}" and audience "${name.audience}"`,
    )
  }
  return {
    load: async ({ request }) => {
      const { token, expires } = await tokens.exchange({
        endpoint,
        requestId: request.id,
        remoteAddress: request.remoteAddress,
        subjectToken: async () => {
          const bearer = readBearer(request.headers)
          if (bearer.kind === 'token') return bearer.token
          throw new GatewayError('AUTH_REQUIRED', 'no bearer token was sent', { keyword: 'invalid_request' })
        },
      })
      return { token: { jwt: token, expires: expires.toISOString() } }
    },
  }
}
