import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { ownIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { BegunOutcome, LoginDesk } from '#requests/login/login-desk.ts'
import { isNavigation } from '#requests/login/login-routes.ts'
import { addHeader, applyResults, asked, type RequestContext, type Step } from '#requests/login/request-context.ts'
import type { Chain, ChainCall, ChainOutcome, ChainRunner } from '#requests/routing/chain.ts'
import type { Application, MatchedUrl } from '#requests/routing/routes.ts'
import type { LiveSession, Sessions } from '#requests/sessions/sessions.ts'
import type { LoginGuard } from '#sdk/auth/login.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

/** The caller if no chain ran. Rules still decide what it may do. */
export const anonymous: Subject = {
  dn: Dn.parse('uid=Anonymous,o=Tremolo'),
  identity: ownIdentity('anonymous'),
  uid: 'Anonymous',
  attributes: Attributes.from({ uid: ['Anonymous'], objectClass: ['inetOrgPerson'] }),
  level: 0,
  chain: '',
}

export interface AuthenticationParts {
  readonly desk: LoginDesk
  readonly chains: ChainRunner
  readonly sessions: Sessions
}

/** Runs the URL's chain, unless the session is already authenticated at its level or above. */
export const authenticate =
  (parts: AuthenticationParts): Step =>
  (context) => {
    const { url: match, session } = context
    if (match === undefined) throw new Error('authentication needs a matched request')
    const { chain } = match.url
    if (session !== undefined && session.subject.level >= (chain?.level ?? 0)) {
      context.subject = session.subject
      return undefined
    }
    if (chain === undefined) {
      context.subject = anonymous
      return undefined
    }
    const preflight = answerPreflight(chain, context)
    if (preflight !== undefined) return preflight
    return andThen(runChain(chain, context, parts), (outcome) => applyOutcome(outcome, match, parts.sessions, context))
  }

/** Runs the chain for a request that is not authenticated for it. A page that a browser opens may ask its user. */
export function runChain(
  chain: Chain,
  context: RequestContext,
  { desk, chains }: Omit<AuthenticationParts, 'sessions'>,
): Awaitable<BegunOutcome> {
  const { request, application, session } = context
  const sessionId = application?.cookies === undefined ? undefined : (session?.handle.id ?? newId())
  if (sessionId !== undefined && isNavigation(request)) return desk.begin(chain, sessionId, context)
  const known = { guard: desk.guardOf(chain, context), ...(sessionId === undefined ? {} : { sessionId }) }
  return andThen(runByCredentials(chain, context, chains, known), (outcome) =>
    outcome.kind === 'rejected' ? outcome : { ...outcome, sessionId },
  )
}

/** Runs the chain by the credentials of the request alone. */
export function runByCredentials(
  chain: Chain,
  context: RequestContext,
  chains: ChainRunner,
  known: { readonly guard?: LoginGuard; readonly sessionId?: string } = {},
): Awaitable<Exclude<ChainOutcome, { readonly kind: 'challenge' }>> {
  const { request } = context
  const call: ChainCall = {
    begin: ({ mechanism }, { root }, subject) =>
      andThen(mechanism.begin({ request, subject, root, ...known }), (found) => asked(found, false, context)),
  }
  return andThen(chains.run(chain, call), (outcome) => {
    if (outcome.kind === 'challenge') throw new Error('a challenge was not turned into a rejection')
    return outcome
  })
}

function applyOutcome(
  outcome: BegunOutcome,
  { url: { results } }: MatchedUrl,
  sessions: Sessions,
  context: RequestContext,
): Awaitable<GatewayResponse | undefined> {
  if (outcome.kind === 'answered') return outcome.response
  if (outcome.kind === 'rejected') {
    const instead = applyResults(results.auFail, context)
    if (instead !== undefined) return instead
    throw refusal(outcome)
  }
  const { application } = context
  context.subject = outcome.subject
  if (application?.cookies === undefined || outcome.subject.level === 0) {
    if (application?.cookies === undefined) context.established = outcome
    return applyResults(results.auSuccess, context)
  }
  return startSession(sessions, application, context, outcome).then((session) => {
    context.session = session
    return applyResults(results.auSuccess, context)
  })
}

export function refusal(rejection: Extract<ChainOutcome, { kind: 'rejected' }>): GatewayError {
  return new GatewayError(refusalCode(rejection), rejection.reason, { headers: rejection.headers ?? {} })
}

function refusalCode({ status, noCredential }: Extract<ChainOutcome, { kind: 'rejected' }>): ErrorCode {
  if (status === 403) return 'ACCESS_DENIED'
  return noCredential === true ? 'AUTH_REQUIRED' : 'AUTH_REJECTED'
}

function answerPreflight(chain: Chain, context: RequestContext): GatewayResponse | undefined {
  for (const { mechanism } of chain.links) {
    const headers = mechanism.responseHeaders?.(context.request)
    if (headers !== undefined) {
      for (const [name, value] of Object.entries(headers)) addHeader(context, name, value)
    }
    const response = mechanism.preflight?.(context.request)
    if (response !== undefined) return response
  }
  return undefined
}

/** For a chain that needed no input. Sets the session's cookie. */
export async function startSession(
  sessions: Sessions,
  application: Application,
  context: RequestContext,
  { subject, sessionId, session: contribution, renewals }: Extract<BegunOutcome, { kind: 'authenticated' }>,
): Promise<LiveSession> {
  const { request, session: before } = context
  const isSame = before?.subject.identity === subject.identity
  const id = sessionId === undefined || (before !== undefined && !isSame) ? {} : { id: sessionId }
  const started = await sessions.start(application, { request, subject, before, contribution, renewals, ...id })
  addHeader(context, 'set-cookie', started.cookie)
  return started.session
}

/** Whether everyone may read here: no chain and no rule applies. */
export function isOpenPath({ url, mount }: MatchedUrl, method: string, path: string): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return url.openPaths?.some((open) => path.startsWith(mount + open)) === true
}

/** Passes requests for public content straight to the filters, as anonymous and without using a session. */
export const serveOpenPath =
  (filters: Step): Step =>
  (context) => {
    const { request, url } = context
    if (url === undefined || !isOpenPath(url, request.method, request.path)) return undefined
    context.subject = anonymous
    return filters(context)
  }
