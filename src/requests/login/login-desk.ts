import { z } from 'zod'
import type { Subject } from '#identity/subject.ts'
import { networkOf } from '#kernel/address.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { newSecret, secretHash } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { type RateLimits, requireRate } from '#kernel/rate-limit.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type {
  Chain,
  ChainCall,
  ChainLink,
  ChainOutcome,
  ChainPosition,
  ChainRunner,
  Established,
} from '#requests/routing/chain.ts'
import type { Application, MatchedUrl, Routes } from '#requests/routing/routes.ts'
import { readSecretCookie } from '#requests/sessions/session-cookie.ts'
import type { Sessions } from '#requests/sessions/sessions.ts'
import { storedSteps, storedSubject, storeSteps, storeSubject } from '#requests/sessions/stored-subject.ts'
import { type LoginGuard, type LoginStep, seeOther } from '#sdk/auth/login.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { htmlErrors } from '#sdk/page/page.ts'
import { entryKey, readDevices, writeDevices } from './device-cookie.ts'
import type { LoginAudit, LoginMeter } from './login-audit.ts'
import type { LoginFailureStore } from './login-failure-store.ts'
import { createGuard } from './login-guard.ts'
import {
  cliLoginDone,
  cliLoginPath,
  continuePage,
  foreignPost,
  refusedLogin,
  signedOut,
  signedOutPath,
  takenStep,
  unknownLogin,
} from './login-pages.ts'
import { addressOf, isOwnPost, type LoginRoutes, loginPrefix, pathBelow } from './login-routes.ts'
import type { Login, LoginStore } from './login-store.ts'
import type { PasswordChangeStore } from './password-change-store.ts'
import { addHeader, applyResults, asked, type RequestContext } from './request-context.ts'

/** What outlives a configuration. */
export interface LoginServices {
  readonly logins: LoginStore
  readonly loginFailures: LoginFailureStore
  readonly rateLimits: RateLimits
  readonly passwordChanges: PasswordChangeStore
  readonly loginSecrets: SecretBox
  readonly loginAudit: LoginAudit
  readonly loginMeter: LoginMeter
  readonly sessions: Sessions
  readonly clock: Clock
  readonly log: Logger
}

interface LoginDeskParts extends LoginServices {
  readonly chains: ChainRunner
  readonly routes: Routes
  readonly loginRoutes: LoginRoutes
}

/** How long a user may take to log in. */
export const loginSeconds = 600
/** Login redirects per address: each of them is a row in storage. */
const beginnings = { burst: 120, perMinute: 120 }

export type BegunOutcome =
  | (Extract<ChainOutcome, { kind: 'authenticated' }> & { readonly sessionId: string | undefined })
  | { readonly kind: 'answered'; readonly response: GatewayResponse }
  | Extract<ChainOutcome, { kind: 'rejected' }>

/** The state of a login between two requests. */
interface LoginRecord {
  readonly chain: string
  /** A path of the host, with its query. */
  readonly returnTo: string
  /** The public id of the future session. */
  readonly sessionId: string
  /** That session exists already, and will be re-authenticated. */
  readonly stepsUp: boolean
  readonly position: ChainPosition
  /** The mechanism's. */
  readonly state: JsonObject
}

interface FoundLogin {
  readonly login: Login
  readonly record: LoginRecord
  readonly chain: Chain
  readonly link: ChainLink & { readonly uri: string }
}

/** Runs chains that may need input from the user, over several requests. Its state is in storage only. */
export class LoginDesk {
  readonly #parts: LoginDeskParts
  readonly #completion: LoginCompletion

  constructor(parts: LoginDeskParts) {
    this.#parts = parts
    this.#completion = new LoginCompletion(parts)
  }

  /** Runs the chain for a page that a browser opens. The response says what the browser has to do. */
  begin(chain: Chain, sessionId: string, context: RequestContext): Awaitable<BegunOutcome> {
    const { request, session } = context
    const id = newSecret()
    const guard = this.guardOf(chain, context)
    const call: ChainCall = {
      begin: ({ mechanism, uri }, { root }, subject) => {
        const login = uri === undefined ? {} : { login: stepAt(uri, id) }
        const outcome = mechanism.begin({ request, subject, root, ...login, sessionId, guard })
        return andThen(outcome, (found) => asked(found, uri !== undefined, context))
      },
    }
    return andThen(this.#parts.chains.run(chain, call), (outcome) => {
      if (outcome.kind === 'rejected') return outcome
      if (outcome.kind === 'authenticated') return { ...outcome, sessionId }
      const { response, position, state = {} } = outcome
      const record: LoginRecord = {
        chain: chain.name,
        returnTo: addressOf(request),
        sessionId,
        stepsUp: session !== undefined,
        position,
        state,
      }
      return this.#keep(id, record, context).then((cookie) => {
        addHeader(context, 'set-cookie', cookie)
        this.#parts.loginMeter.counted(chain.name, 'begun')
        return { kind: 'answered', response }
      })
    })
  }

  /** Counts what callers try. Opened with the first try, since most requests have none. */
  guardOf(chain: Chain, { application, request }: RequestContext): LoginGuard {
    return { begin: async (typed, options) => (await this.#guard(chain, application, request)).begin(typed, options) }
  }

  /** Answers requests to the URIs of mechanisms; undefined for all others. */
  async serve(context: RequestContext): Promise<GatewayResponse | undefined> {
    const { request } = context
    if (request.path === signedOutPath) return signedOut(request, wayBack(request, this.#parts.routes))
    if (request.path === cliLoginPath) return cliLoginDone(request)
    const place = this.#parts.loginRoutes.find(request.host, request.path)
    if (place === undefined) return undefined
    context.errors = htmlErrors
    const id = request.query.get('login') ?? request.query.get('state')
    if (id === null) {
      for (const mechanism of place.mechanisms) {
        const response = await mechanism.serve?.(request, pathBelow(place.uri, request.path) ?? '')
        if (response !== undefined) return response
      }
      return unknownLogin(request, wayBack(request, this.#parts.routes))
    }
    if (!isOwnPost(request)) {
      this.#parts.log.info('a login from another site refused', { requestId: request.id })
      return foreignPost(request)
    }
    const found = await this.#find(id, context)
    if (found === undefined) {
      this.#parts.log.info('an unknown login refused', { requestId: request.id, remote: request.remoteAddress })
      return unknownLogin(request, wayBack(request, this.#parts.routes))
    }
    return this.#proceed(found, context)
  }

  async #proceed({ login, record, chain, link }: FoundLogin, context: RequestContext): Promise<GatewayResponse> {
    const { request } = context
    const { chains, logins, loginSecrets, clock, log } = this.#parts
    const here = stepAt(link.uri, login.id).address
    const pathInfo = pathBelow(link.uri, request.path)
    if (pathInfo === undefined) {
      log.info('a step of a login that was taken already refused', { requestId: request.id, chain: chain.name })
      return takenStep(request, here)
    }
    const { sessionId, state } = record
    const common = { request, sessionId }
    let known = record.position.subject
    const call: ChainCall = {
      begin: async ({ mechanism, uri }, { root }, subject) => {
        known = subject
        const step = uri === undefined ? {} : { login: stepAt(uri, login.id) }
        return asked(await mechanism.begin({ ...common, subject, root, ...step }), uri !== undefined, context)
      },
      proceed: async ({ mechanism }, { root }, subject) => {
        const guard = await this.#guard(chain, this.#completion.applicationOf(record, request), request)
        const attempt = { ...common, subject, root, login: stepAt(link.uri, login.id), state, pathInfo, guard }
        const outcome = await mechanism.proceed?.(attempt)
        return asked(outcome ?? { kind: 'rejected', reason: `"${link.name}" cannot continue a login` }, true, context)
      },
    }
    const outcome = await chains.resume(chain, call, record.position)
    const lost = (): GatewayResponse => {
      log.info('a step of a login that another request took refused', { requestId: request.id, chain: chain.name })
      return takenStep(request, here)
    }
    if (outcome.kind === 'challenge') {
      const stays = samePlace(outcome.position, record.position)
      if (stays && outcome.state === undefined) return outcome.response
      const next = { ...record, position: outcome.position, state: outcome.state ?? (stays ? state : {}) }
      const data = await loginSecrets.seal(storeLogin(next), login.id)
      return (await logins.advance(login.id, login.version, data, clock())) ? outcome.response : lost()
    }
    if (!(await logins.finish(login.id, login.version, clock()))) return lost()
    if (outcome.kind === 'rejected') return this.#completion.refuse(outcome, record, known, context)
    return this.#completion.complete(outcome, record, context)
  }

  async #guard(
    { name, limits }: Chain,
    application: Application | undefined,
    request: GatewayRequest,
  ): Promise<LoginGuard> {
    const { loginFailures, loginAudit, loginMeter, loginSecrets, clock, passwordChanges } = this.#parts
    const { name: applicationName = '', cookies } = application ?? {}
    const devices = cookies === undefined ? [] : await readDevices(request, cookies, { box: loginSecrets, clock })
    return createGuard(
      { failures: loginFailures, audit: loginAudit, meter: loginMeter, clock, passwordChanges },
      { request, chain: name, application: applicationName, limits, devices },
    )
  }

  /** Sets the cookie that binds the login to this browser. */
  async #keep(id: string, record: LoginRecord, { request }: RequestContext): Promise<string> {
    const { logins, rateLimits, loginSecrets, clock } = this.#parts
    await requireRate(rateLimits, 'logins begun from one address', networkOf(request.remoteAddress), beginnings)
    const now = clock()
    const known = readLoginCookie(request)
    // A secret that this host did not issue to the browser is not accepted.
    const isOurs = known !== undefined && (await logins.knows(secretHash(known), now))
    const secret = isOurs ? known : newSecret()
    await logins.create({
      id,
      browser: secretHash(secret),
      host: request.host,
      data: await loginSecrets.seal(storeLogin(record), id),
      version: 0,
      created: now,
      expires: new Date(now.getTime() + loginSeconds * 1000),
    })
    return writeLoginCookie(request, secret, loginSeconds)
  }

  async #find(id: string, { request }: RequestContext): Promise<FoundLogin | undefined> {
    const { logins, loginSecrets, chains, clock } = this.#parts
    const secret = readLoginCookie(request)
    if (secret === undefined || !/^[\w-]{43}$/.test(id)) return undefined
    const login = await logins.find({ id, browser: secretHash(secret), host: request.host }, clock())
    if (login === undefined) return undefined
    const record = restoreLogin(await loginSecrets.open(login.data, id))
    const chain = record === undefined ? undefined : chains.get(record.chain)
    const link = record === undefined ? undefined : chains.linkAt(record.position.place)
    if (record === undefined || chain === undefined || link?.uri === undefined) return undefined
    return { login, record, chain, link: { ...link, uri: link.uri } }
  }
}

const stepAt = (uri: string, id: string): LoginStep => ({ id, uri, address: `${uri}?login=${id}` })

const samePlace = (one: ChainPosition, other: ChainPosition): boolean =>
  one.place.length === other.place.length &&
  one.place.every(({ chain, link }, i) => other.place[i]?.chain === chain && other.place[i]?.link === link)

type CookieRequest = Pick<GatewayRequest, 'headers' | 'origin'>

const isSecure = ({ origin }: CookieRequest): boolean => origin.startsWith('https:')
const nameFor = (request: CookieRequest): string => (isSecure(request) ? '__Host-gatehouse-login' : 'gatehouse-login')

/** The secret that binds logins to this browser. */
const readLoginCookie = (request: CookieRequest): string | undefined => readSecretCookie(nameFor(request), request)

/** `Lax`, since the redirect back from an external issuer must send it; a form of another site never does. */
function writeLoginCookie(request: CookieRequest, secret: string, seconds: number): string {
  const parts = [`${nameFor(request)}=${secret}`, 'Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${seconds}`]
  if (isSecure(request)) parts.push('Secure')
  return parts.join('; ')
}

type Asked = Pick<GatewayRequest, 'headers' | 'host' | 'origin'>

/**
 * Where a user can continue from a final page: the referring page of this host, or the start of the only
 * application with a login here. Undefined if neither is known.
 */
const wayBack = (request: Asked, routes: Routes): string | undefined =>
  pageBefore(request, routes) ?? onlyStart(request, routes)

/** A path without its query, which may trigger an action or contain a secret. */
function pageBefore(request: Asked, routes: Routes): string | undefined {
  const before = URL.parse(header(request, 'referer') ?? '')
  if (before === null || before.origin !== request.origin) return undefined
  const { pathname: path } = before
  // Two leading slashes would name another host.
  if (/^[/\\]{2}/.test(path) || path.startsWith(loginPrefix)) return undefined
  const cookies = routes.find(request.host, path)?.application.cookies
  return cookies === undefined || cookies.logoutUri === path ? undefined : path
}

function onlyStart({ host }: Asked, routes: Routes): string | undefined {
  const [application, another] = routes.at(host).filter(({ cookies }) => cookies !== undefined)
  if (application === undefined || another !== undefined) return undefined
  const start = application.urls.find(
    ({ chain, pattern, hosts }) =>
      chain !== undefined && pattern === undefined && (hosts.includes(host) || hosts.includes('*')),
  )
  return start === undefined || start.uri.startsWith(loginPrefix) ? undefined : start.uri
}

interface Parts {
  readonly routes: Routes
  readonly sessions: Sessions
  readonly loginAudit: LoginAudit
  readonly loginMeter: LoginMeter
  readonly loginSecrets: SecretBox
  readonly clock: Clock
  readonly log: Logger
}

/** Handles the result of a finished chain. */
class LoginCompletion {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  applicationOf(record: LoginRecord, request: Pick<GatewayRequest, 'host'>): Application | undefined {
    return this.#target(record, request)?.application
  }

  /** `known` is the user that earlier mechanisms established. */
  async refuse(
    rejection: Extract<ChainOutcome, { kind: 'rejected' }>,
    record: LoginRecord,
    known: Subject | undefined,
    context: RequestContext,
  ): Promise<GatewayResponse> {
    const { request } = context
    const { loginAudit, loginMeter } = this.#parts
    const target = this.#target(record, request)
    const { chain, returnTo } = record
    if (target !== undefined) context.application = target.application
    loginMeter.counted(chain, 'refused')
    await loginAudit.note({
      action: 'refuse',
      request,
      login: known?.uid ?? 'unknown',
      chain,
      application: target?.application.name ?? '',
      reason: rejection.reason,
    })
    const instead = applyResults(target?.url.results.auFail, context)
    return instead ?? refusedLogin(request, rejection.status ?? 401, returnTo)
  }

  /**
   * Starts the session, or re-authenticates the existing one under a new secret, and sends the browser to the
   * requested page. A login for one session never authenticates another.
   */
  async complete(
    outcome: Extract<ChainOutcome, { kind: 'authenticated' }>,
    record: LoginRecord,
    context: RequestContext,
  ): Promise<GatewayResponse> {
    const { request } = context
    const { sessions, loginAudit, loginMeter, loginSecrets, clock, log } = this.#parts
    const { chain, returnTo, sessionId, stepsUp } = record
    const { subject } = outcome
    const target = this.#target(record, request)
    const application = target?.application
    if (target === undefined || application?.cookies === undefined) return seeOther(returnTo)
    context.application = application
    const before = await sessions.find(application, request)
    const isHere = before?.handle.id === sessionId
    const isSame = before?.subject.identity === subject.identity
    if (stepsUp && !(isHere && isSame)) {
      log.info('the step-up starts again: the session ended, or belongs to another user', {
        requestId: request.id,
        chain,
      })
      if (before !== undefined) await sessions.end(before)
      addHeader(context, 'set-cookie', sessions.clearing(application.cookies))
      return seeOther(returnTo)
    }
    await loginAudit.write({
      action: 'issue',
      request,
      login: subject.uid,
      chain,
      application: application.name,
      sessionId,
    })
    const started = await sessions.start(application, {
      request,
      subject,
      before,
      id: sessionId,
      contribution: outcome.session,
      renewals: outcome.renewals,
    })
    loginMeter.counted(chain, 'signed-in')
    context.subject = subject
    addHeader(context, 'set-cookie', started.cookie)
    if (subject.link !== undefined) {
      const devices = await readDevices(request, application.cookies, { box: loginSecrets, clock })
      const entry = entryKey(subject.identity)
      addHeader(
        context,
        'set-cookie',
        await writeDevices(devices, entry, application.cookies, { box: loginSecrets, clock }),
      )
    }
    const instead = applyResults(target.url.results.auSuccess, context)
    if (instead !== undefined) return instead
    const foreign = header(request, 'sec-fetch-site') === 'cross-site'
    return foreign && application.cookies.sameSite === 'Strict' ? continuePage(request, returnTo) : seeOther(returnTo)
  }

  #target({ returnTo }: LoginRecord, { host }: Pick<GatewayRequest, 'host'>): MatchedUrl | undefined {
    return this.#parts.routes.find(host, returnTo.split('?', 1)[0] ?? '/')
  }
}

/** What a chain has established so far, stored. */
const storedFound = z
  .object({
    subject: storedSubject.nullable(),
    slots: z.custom<JsonObject>(isJsonObject),
    marks: z.array(z.string()),
    companions: z.array(z.object({ id: z.string(), application: z.string(), idleSeconds: z.number() })).default([]),
    renewals: storedSteps,
  })
  .transform(({ subject, slots, marks, companions, renewals }): Established => {
    return { subject: subject ?? undefined, session: { slots, marks, companions }, renewals }
  })

const storeFound = ({ subject, session, renewals }: Established): JsonObject => ({
  subject: subject === undefined ? null : storeSubject(subject),
  slots: { ...session.slots },
  marks: [...(session.marks ?? [])],
  companions: (session.companions ?? []).map((companion) => ({ ...companion })),
  renewals: storeSteps(renewals),
})

/** The state of a login between two requests, stored. */
const storedLogin = z
  .object({
    chain: z.string(),
    returnTo: z.string(),
    sessionId: z.string(),
    stepsUp: z.boolean(),
    place: z.array(z.object({ chain: z.string(), link: z.number(), name: z.string(), before: storedFound })).nonempty(),
    found: storedFound,
    state: z.custom<JsonObject>(isJsonObject),
  })
  .transform(({ place, found, ...login }): LoginRecord => ({ ...login, position: { ...found, place } }))

/** Undefined for anything else, as after a change of format: the login then has to begin again. */
const restoreLogin = (data: JsonObject): LoginRecord | undefined => storedLogin.safeParse(data).data

const storeLogin = ({ position, ...login }: LoginRecord): JsonObject => ({
  ...login,
  place: position.place.map(({ chain, link, name, before }) => ({ chain, link, name, before: storeFound(before) })),
  found: storeFound(position),
})
