import { LoginDesk, type LoginServices } from '#engine/login/login-desk.ts'
import { type LoginRoutes, loginPrefix } from '#engine/login/login-routes.ts'
import { createLogout } from '#engine/login/logout.ts'
import { authenticate } from '#engine/pipeline/authenticate.ts'
import { authorize } from '#engine/pipeline/authorize.ts'
import type { ChainRunner } from '#engine/pipeline/chain.ts'
import { loadSession } from '#engine/pipeline/load-session.ts'
import { matchUrl } from '#engine/pipeline/match-url.ts'
import { serveOpenPath } from '#engine/pipeline/open-path.ts'
import type { Passage, Step } from '#engine/pipeline/passage.ts'
import type { Routes } from '#engine/pipeline/routes.ts'
import type { RuleEvaluator } from '#engine/pipeline/rule-evaluator.ts'
import { runFilterChain } from '#engine/pipeline/run-filter-chain.ts'
import { requireSameOrigin } from '#engine/pipeline/same-origin.ts'
import { requireSamePerson } from '#engine/pipeline/same-person.ts'
import type { SessionRenewal } from '#engine/session/session-renewal.ts'
import { asGatewayError, type GatewayError } from '#kernel/errors.ts'
import { jsonErrors } from '#sdk/filter/error-format.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'

export interface PipelineParts extends LoginServices {
  readonly routes: Routes
  readonly loginRoutes: LoginRoutes
  readonly chains: ChainRunner
  readonly rules: RuleEvaluator
  readonly renewal: Pick<SessionRenewal, 'current'>
}

/** The order of these steps is what keeps applications closed: changing it is a security review. */
const requestSteps = (parts: PipelineParts, desk: LoginDesk): readonly Step[] => [
  (passage) => serveLogin(desk, passage), // the mechanisms' own addresses
  matchUrl(parts.routes), //        no match: 404
  serveOpenPath(runFilterChain({ ...parts, desk })), // what a URL's filter declares to be no secret
  loadSession(parts.sessions, parts.renewal, createLogout(parts)), // only where the application keeps cookies; answers its logout address
  authenticate(desk, parts.sessions), // the URL's chain, when the session is not already at its level
  requireSameOrigin, //             changes that only a cookie speaks for
  requireSamePerson(parts), //      pages that were made for somebody else
  authorize(parts.rules, parts.clock), // any rule passes; none: 403
  runFilterChain({ ...parts, desk }), // the answering filter, or 404
]

/** Most requests are no login's, and are not to wait for nothing. */
const serveLogin = (desk: LoginDesk, passage: Passage): ReturnType<Step> =>
  passage.request.path.startsWith(loginPrefix) ? desk.serve(passage) : undefined

export interface PipelineAnswer {
  readonly response: GatewayResponse
  /** Set when the request failed; its details are for the log. */
  readonly error: GatewayError | undefined
  readonly passage: Passage
}

export type Pipeline = (request: GatewayRequest) => Promise<PipelineAnswer>

/** Never rejects: what a step throws becomes an answer in the format of the API that was addressed. */
export function createPipeline(parts: PipelineParts): Pipeline {
  const steps = requestSteps(parts, new LoginDesk(parts))
  return async (request) => {
    const passage: Passage = { request, headers: {}, errors: jsonErrors }
    try {
      for (const step of steps) {
        const result = step(passage)
        const response = result instanceof Promise ? await result : result
        if (response !== undefined) return { response: withHeaders(response, passage), error: undefined, passage }
      }
      throw new Error('no step answered')
    } catch (thrown) {
      const error = asGatewayError(thrown)
      return { response: withHeaders(errorResponse(error, passage), passage), error, passage }
    }
  }
}

export function errorResponse(error: GatewayError, passage: Pick<Passage, 'errors' | 'request'>): GatewayResponse {
  const { headers, body } = passage.errors(error, passage.request.id)
  const retry: Record<string, string> =
    error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) }
  return {
    status: error.status,
    headers: { ...headers, ...retry, ...error.headers },
    ...(body === undefined ? {} : { body }),
  }
}

/** The response's own headers go first, except that cookies of both are set. */
function withHeaders(response: GatewayResponse, { headers: added }: Passage): GatewayResponse {
  for (const _ in added) {
    const headers: Record<string, string | string[]> = { ...added, ...response.headers }
    const cookies = [added['set-cookie'] ?? [], response.headers['set-cookie'] ?? []].flat()
    if (cookies.length > 1) headers['set-cookie'] = cookies
    return { ...response, headers }
  }
  return response
}
