import type { LoginDesk } from '#engine/login/login-desk.ts'
import { addressOf } from '#engine/login/navigation.ts'
import { refusal } from '#engine/pipeline/authenticate.ts'
import type { ChainRunner } from '#engine/pipeline/chain.ts'
import { addHeader, type Passage, type Step } from '#engine/pipeline/passage.ts'
import type { Sessions } from '#engine/session/sessions.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

export interface FilterChainParts {
  readonly chains: ChainRunner
  readonly desk: LoginDesk
  readonly sessions: Sessions
  readonly clock: Clock
}

/** Filters run in the order of the YAML; a request that none of them answers is not found. */
export const runFilterChain =
  (parts: FilterChainParts): Step =>
  (passage) => {
    const { request, url, subject, session, application } = passage
    if (url === undefined || subject === undefined)
      throw new Error('the filter chain needs a matched, authorized request')
    const exchange: Exchange = {
      request,
      application: url.application.name,
      mount: url.mount,
      pathInfo: request.path.slice(url.mount.length),
      subject,
      identify: (caller) => {
        passage.caller = caller
      },
      ...(session === undefined ? {} : { session: session.handle }),
      ...(application?.cookies === undefined
        ? {}
        : { requireLogin: (chain, options) => requireLogin(parts, passage, chain, options?.maxAgeSeconds) }),
    }
    return runFrom(0, url.url.filters, exchange)
  }

async function runFrom(index: number, filters: readonly Filter[], exchange: Exchange): Promise<GatewayResponse> {
  const filter = filters[index]
  if (filter === undefined) throw new GatewayError('NOT_FOUND', 'no filter answered the request')
  return filter.handle(exchange, () => runFrom(index + 1, filters, exchange))
}

async function requireLogin(
  { chains, desk, sessions, clock }: FilterChainParts,
  passage: Passage,
  name: string,
  maxAgeSeconds: number | undefined,
): Promise<GatewayResponse | undefined> {
  const chain = chains.get(name)
  if (chain === undefined) throw new GatewayError('INTERNAL', `there is no chain "${name}"`)
  const { session, application, request } = passage
  const age = session === undefined ? 0 : clock().getTime() - session.handle.authenticated.getTime()
  const isFresh = maxAgeSeconds === undefined || age <= maxAgeSeconds * 1000
  if (session !== undefined && session.subject.level >= chain.level && isFresh) return undefined
  const outcome = await desk.begin(chain, passage)
  if (outcome.kind === 'answered') return outcome.response
  if (outcome.kind === 'rejected') throw refusal(outcome)
  if (application === undefined) throw new Error('a login needs a matched request')
  const { subject, sessionId, session: contribution, renewals } = outcome
  const isSame = session?.subject.identity === subject.identity
  const id = sessionId === undefined || (session !== undefined && !isSame) ? {} : { id: sessionId }
  const started = await sessions.start(application, {
    request,
    subject,
    before: session,
    contribution,
    renewals,
    ...id,
  })
  addHeader(passage, 'set-cookie', started.cookie)
  return seeOther(addressOf(request))
}
