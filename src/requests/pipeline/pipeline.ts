import type { Subject } from '#identity/subject.ts'
import { type Awaitable, firstResult, settle } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { LoginDesk, type LoginServices } from '#requests/login/login-desk.ts'
import { askLogout, createLogout, type Logout } from '#requests/login/login-pages.ts'
import { addressOf, isNavigation, type LoginRoutes, loginPrefix } from '#requests/login/login-routes.ts'
import { applyResults, type RequestContext, type Step } from '#requests/login/request-context.ts'
import type { Chain, ChainRunner } from '#requests/routing/chain.ts'
import type { Routes, Url } from '#requests/routing/routes.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Sessions } from '#requests/sessions/sessions.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { Exchange, SessionlessCaller } from '#sdk/filter/exchange.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import {
  type AuthenticationParts,
  authenticate,
  refusal,
  runByCredentials,
  runChain,
  serveOpenPath,
  startSession,
} from './authenticate.ts'
import type { SessionRenewal } from './session-renewal.ts'

export interface PipelineParts extends LoginServices {
  readonly routes: Routes
  readonly loginRoutes: LoginRoutes
  readonly chains: ChainRunner
  readonly rules: RuleEvaluator
  readonly renewal: Pick<SessionRenewal, 'current'>
  /** Seconds until what could not be created is tried again; undefined if it isn't. */
  readonly secondsToRetry?: (() => number | undefined) | undefined
}

/** The order of these steps keeps applications closed: changing it needs a security review. */
const requestSteps = (parts: PipelineParts, desk: LoginDesk): readonly Step[] => [
  (context) => serveLogin(desk, context), // the mechanisms' own addresses
  matchUrl(parts), //               no match: 404; an application that is set aside: 503
  serveOpenPath(runFilterChain({ ...parts, desk })), // content that a URL's filter declares public
  loadSession(parts.sessions, parts.renewal, createLogout(parts)), // only where the application keeps cookies; answers its logout address
  authenticate({ ...parts, desk }), // the URL's chain, when the session is not already at its level
  requireSameOrigin, //             changes authenticated only by a cookie
  requireSamePerson(parts), //      pages made for another user
  authorize(parts.rules, parts.clock), // any rule passes; none: 403
  runFilterChain({ ...parts, desk }), // the answering filter, or 404
]

/** Most requests belong to no login, and must not wait. */
const serveLogin = (desk: LoginDesk, context: RequestContext): ReturnType<Step> =>
  context.request.path.startsWith(loginPrefix) ? desk.serve(context) : undefined

export interface PipelineAnswer {
  readonly response: GatewayResponse
  /** Set if the request failed; its details are for the log. */
  readonly error: GatewayError | undefined
  readonly context: RequestContext
}

export type Pipeline = (request: GatewayRequest) => Awaitable<PipelineAnswer>

/** Never rejects: an error of a step becomes a response in the format of the addressed API. */
export function createPipeline(parts: PipelineParts): Pipeline {
  const steps = requestSteps(parts, new LoginDesk(parts))
  return (request) => {
    request.look = parts.routes.look(request.host)
    const context: RequestContext = { request, headers: {}, errors: jsonErrors }
    return settle(
      () => firstResult(steps, (step) => step(context)),
      (response) =>
        response === undefined ? failed(new Error('no step answered'), context) : answered(response, context),
      (thrown) => failed(thrown, context),
    )
  }
}

const answered = (response: GatewayResponse, context: RequestContext): PipelineAnswer => ({
  response: withHeaders(response, context),
  error: undefined,
  context,
})

function failed(thrown: unknown, context: RequestContext): PipelineAnswer {
  const error = asGatewayError(thrown)
  return { response: withHeaders(errorResponse(error, context), context), error, context }
}

/** When to send a request again that a downstream system did not answer, unless the error says more. */
const unreachableSeconds = 5

export function errorResponse(
  error: GatewayError,
  context: Pick<RequestContext, 'errors' | 'request'>,
): GatewayResponse {
  const { headers, body } = context.errors(error, context.request.id, context.request)
  const seconds = error.retryAfter ?? (error.code === 'TARGET_UNREACHABLE' ? unreachableSeconds : undefined)
  const retry: Record<string, string> = seconds === undefined ? {} : { 'retry-after': String(seconds) }
  return {
    status: error.status,
    headers: { ...headers, ...retry, ...error.headers },
    body,
  }
}

/** The response's own headers win, except that cookies of both are set. */
function withHeaders(response: GatewayResponse, { headers: added }: RequestContext): GatewayResponse {
  for (const _ in added) {
    const headers: Record<string, string | string[]> = { ...added, ...response.headers }
    const cookies = [added['set-cookie'] ?? [], response.headers['set-cookie'] ?? []].flat()
    if (cookies.length > 1) headers['set-cookie'] = cookies
    return { ...response, headers }
  }
  return response
}

const matchUrl =
  ({ routes, secondsToRetry }: Pick<PipelineParts, 'routes' | 'secondsToRetry'>): Step =>
  (context) => {
    const match = routes.find(context.request.host, context.request.path)
    if (match === undefined) {
      throw new GatewayError('NOT_FOUND', `no URL for host ${context.request.host} and path ${context.request.path}`, {
        // An address of the listener, say, instead of the public name.
        publicText: `No application is configured for this ${routes.serves(context.request.host) ? 'path' : 'host name'}.`,
      })
    }
    context.errors = match.url.errors
    const { name, setAside } = match.application
    if (setAside !== undefined) {
      const { reason, mayPass } = setAside
      throw new GatewayError('NOT_AVAILABLE', `the application "${name}" is set aside because of ${reason}`, {
        retryAfter: mayPass ? secondsToRetry?.() : undefined,
      })
    }
    context.application = match.application
    context.url = match
    return undefined
  }

/**
 * Reads the application's session from its cookie, with the current directory data of its owner; applications
 * without cookies have none. Answers the logout address, even without a session.
 */
const loadSession =
  (sessions: Sessions, renewal: Pick<SessionRenewal, 'current'>, logout: Logout): Step =>
  (context) => {
    const { application, request, url } = context
    const cookies = application?.cookies
    if (application === undefined || cookies === undefined) return undefined
    return (async () => {
      const session = await sessions.find(application, request, { use: url?.url.extendsSession !== false })
      if (request.path === cookies.logoutUri) {
        // A prefetching browser was not asked to log out.
        if (/prefetch/i.test(header(request, 'sec-purpose') ?? header(request, 'purpose') ?? '')) {
          return { status: 204, headers: { 'cache-control': 'no-store' } }
        }
        // Nor was a user who followed a link of another site. The session stays, and so does its cookie.
        if (header(request, 'sec-fetch-site') === 'cross-site') {
          if (isNavigation(request)) return askLogout(request)
          throw new GatewayError('ACCESS_DENIED', 'a logout by a page of another site')
        }
        const location = await logout(session, context)
        const headers = { 'set-cookie': sessions.clearing(cookies), 'cache-control': 'no-store' }
        if (!isNavigation(request)) return { status: 204, headers }
        return { status: 303, headers: { ...headers, location } }
      }
      if (session === undefined) return undefined
      const found = renewal.current(session, request)
      const current = found instanceof Promise ? await found : found
      if (current !== undefined) context.session = current
      return undefined
    })()
  }

/**
 * One passing rule of the URL is enough; no rule denies. Decisions are cached for azTimeoutMillis per subject and
 * URL. The subject is the very object that the mechanism returned, so a decision never outlives its credential.
 */
const authorize = (rules: RuleEvaluator, clock: Clock): Step => {
  const remembered = new WeakMap<Url, WeakMap<Subject, { allowed: boolean; until: number }>>()
  return (context) => {
    const { url: match, subject, application } = context
    if (match === undefined || subject === undefined || application === undefined) {
      throw new Error('authorization needs a matched, authenticated request')
    }
    const { url } = match
    let decisions = remembered.get(url)
    if (decisions === undefined) {
      decisions = new WeakMap()
      remembered.set(url, decisions)
    }
    const now = clock().getTime()
    const earlier = decisions.get(subject)
    if (earlier !== undefined && earlier.until > now) return applyDecision(earlier.allowed, url, subject, context)
    return rules.decide(subject, url.rules).then(({ allowed }) => {
      decisions.set(subject, { allowed, until: now + application.azTimeoutMillis })
      return applyDecision(allowed, url, subject, context)
    })
  }
}

function applyDecision(allowed: boolean, { results, at }: Url, { dn }: Subject, context: RequestContext) {
  const instead = applyResults(allowed ? results.azSuccess : results.azFail, context)
  if (allowed || instead !== undefined) return instead
  throw new GatewayError('ACCESS_DENIED', `no rule of ${at} allows ${dn}`)
}

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
const jsonContent = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i
const formContent = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/**
 * Browsers send a session's cookie from pages of any site. So a change authenticated only by the cookie must come
 * from a page of this very origin, be JSON, which no form can send, and have proof that pages of other sites can't
 * give: the browser's own word for the origin of a JSON body, or a header that they can't add without a preflight. A
 * form of a URL for forms can be neither, and needs only the first.
 */
const requireSameOrigin: Step = ({ request, session, subject, url }) => {
  if (session === undefined || subject !== session.subject || readingMethods.has(request.method)) return undefined
  if (!isSameOrigin(request)) {
    throw new GatewayError('ACCESS_DENIED', 'a change by cookie without proof of the same origin', {
      publicText: 'Changes by cookie must come from a page of this site, as JSON or with a header X-Requested-With.',
    })
  }
  const contentType = header(request, 'content-type')
  if (url?.url.takesForms === true && formContent.test(contentType ?? '')) return undefined
  if (contentType !== undefined && !jsonContent.test(contentType)) {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `a change by cookie with content type "${contentType}"`)
  }
  if (!hasOwnHeader(request) && (contentType === undefined || !isProvenOrigin(request))) {
    throw new GatewayError('ACCESS_DENIED', 'a change by cookie without X-Requested-With or proven JSON', {
      publicText: 'Changes by cookie must be JSON from a page of this site, or have a header X-Requested-With.',
    })
  }
  return undefined
}

/** Pages can't choose these headers. If the browser says how page and address relate, that decides. */
function isSameOrigin(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined ? hasOwnHeader(request) : origin === request.origin
}

/** `Sec-Fetch-Site` or `Origin` says that the page is of this origin, and neither contradicts it. */
function isProvenOrigin(request: GatewayRequest): boolean {
  const site = header(request, 'sec-fetch-site')
  const origin = header(request, 'origin')
  if (site === undefined && origin === undefined) return false
  return (site ?? 'same-origin') === 'same-origin' && (origin ?? request.origin) === request.origin
}

const hasOwnHeader = (request: GatewayRequest): boolean => header(request, 'x-requested-with') !== undefined

/** The user of the page that sends a request: their DN, percent-encoded where headers need it. */
const pageOf = 'x-page-of'

interface SamePersonParts {
  readonly sessions: Sessions
  readonly routes: Routes
}

/**
 * A browser has one cookie for all its tabs. After another user signs in in one of them, the page of another tab
 * still shows the first user's data and input; requests from it must not run as the second user. Nor may they run
 * anonymously at a public URL after the session has ended. If such a URL belongs to an application with another
 * cookie, the session of the page's own application counts.
 */
const requireSamePerson =
  (parts: SamePersonParts): Step =>
  ({ request, application, session, subject }) => {
    const person = header(request, pageOf)
    if (person === undefined || application?.cookies === undefined || subject === undefined) return undefined
    if (session !== undefined) {
      if (subject === session.subject) requireOwner(person, subject)
      return undefined
    }
    if (readingMethods.has(request.method) || subject.level > 0) return undefined
    return requireOwnerElsewhere(person, request, parts)
  }

function requireOwner(person: string, subject: Subject): void {
  if (isOwner(person, subject)) return
  throw new GatewayError('OTHER_PERSON', `the page belongs to another user than the session of "${subject.uid}"`)
}

/** Half a surrogate pair, which a token may have in a name, can't be percent-encoded. */
const isOwner = (person: string, { dn, otherNames = [] }: Subject): boolean =>
  [dn, ...otherNames].some((name) => encodeURIComponent(name.toString().toWellFormed()) === person)

/** By a session of any application at this host whose cookie is in the same request. */
async function requireOwnerElsewhere(
  person: string,
  request: GatewayRequest,
  { sessions, routes }: SamePersonParts,
): Promise<undefined> {
  let other: Subject | undefined
  for (const application of routes.at(request.host)) {
    const subject = (await sessions.find(application, request, { use: false }))?.subject
    if (subject !== undefined && isOwner(person, subject)) return undefined
    other ??= subject
  }
  if (other !== undefined) requireOwner(person, other)
  throw new GatewayError('AUTH_REQUIRED', 'a change from a page whose session has ended')
}

interface FilterChainParts extends AuthenticationParts {
  readonly clock: Clock
}

/** Filters run in the order of the YAML; a request that none of them answers is not found. */
const runFilterChain =
  (parts: FilterChainParts): Step =>
  (context) => {
    const { request, url, subject, session, application, established } = context
    if (url === undefined || subject === undefined)
      throw new Error('the filter chain needs a matched, authorized request')
    const exchange: Exchange = {
      request,
      application: url.application.name,
      mount: url.mount,
      pathInfo: request.path.slice(url.mount.length),
      subject,
      identify: (caller) => {
        context.caller = caller
      },
      authenticate: (chain) => authenticateBy(parts, context, chain),
      session: session?.handle,
      ...(established === undefined
        ? {}
        : { sessionless: sessionlessOf(established, subject, request, parts.sessions) }),
      ...(application?.cookies === undefined
        ? {}
        : { requireLogin: (chain, options) => requireLogin(parts, context, chain, options?.maxAgeSeconds) }),
    }
    return runFrom(0, url.url.filters, exchange)
  }

const sessionlessOf = (
  { session, renewals }: NonNullable<RequestContext['established']>,
  subject: Subject,
  request: GatewayRequest,
  sessions: Sessions,
): SessionlessCaller => ({
  slots: session.slots ?? {},
  startCompanion: (companion, authenticated) =>
    sessions.startCompanions({ request, subject, renewals, companions: [companion], authenticated }),
})

function runFrom(index: number, filters: readonly Filter[], exchange: Exchange): Awaitable<GatewayResponse> {
  const filter = filters[index]
  if (filter === undefined) throw new GatewayError('NOT_FOUND', 'no filter answered the request')
  return filter.handle(exchange, async (subject = exchange.subject) =>
    runFrom(index + 1, filters, subject === exchange.subject ? exchange : { ...exchange, subject }),
  )
}

function chainOf(chains: ChainRunner, name: string): Chain {
  const chain = chains.get(name)
  if (chain === undefined) throw new GatewayError('INTERNAL', `no chain is named "${name}"`)
  return chain
}

async function authenticateBy({ chains }: FilterChainParts, context: RequestContext, name: string): Promise<Subject> {
  const outcome = await runByCredentials(chainOf(chains, name), context, chains)
  if (outcome.kind === 'rejected') throw refusal(outcome)
  return outcome.subject
}

async function requireLogin(
  parts: FilterChainParts,
  context: RequestContext,
  name: string,
  maxAgeSeconds: number | undefined,
): Promise<GatewayResponse | undefined> {
  const { sessions, clock } = parts
  const chain = chainOf(parts.chains, name)
  const { session, application, request } = context
  const age = session === undefined ? 0 : clock().getTime() - session.handle.authenticated.getTime()
  const isFresh = maxAgeSeconds === undefined || age <= maxAgeSeconds * 1000
  if (session !== undefined && session.subject.level >= chain.level && isFresh) return undefined
  const outcome = await runChain(chain, context, parts)
  if (outcome.kind === 'answered') return outcome.response
  if (outcome.kind === 'rejected') throw refusal(outcome)
  if (application === undefined) throw new Error('a login needs a matched request')
  await startSession(sessions, application, context, outcome)
  return seeOther(addressOf(request))
}
