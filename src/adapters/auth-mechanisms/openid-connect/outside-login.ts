import { decodeJwt } from 'jose/jwt/decode'
import type { Configuration, IDToken, TokenEndpointResponse } from 'openid-client'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { DiscoveredKeySet } from '#protocols/jwt/discovered-key-set.ts'
import type { KeySet } from '#protocols/jwt/keys.ts'
import { createTokenVerifier, longestToken, TokenRejected, type TokenVerifier } from '#protocols/jwt/token-verifier.ts'
import { allowMethods } from '#sdk/api/routes.ts'
import type { AuthAttempt, AuthHost, AuthMechanism, AuthOutcome, LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { SessionContribution, SessionHandle } from '#sdk/auth/session.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { readForm } from '#sdk/http/read-form.ts'
import { claimAttributes, linkSubject } from '#sdk/login/linked-subject.ts'
import type { IssuerClient } from './issuer-client.ts'
import type { OpenIdConnectConfig } from './parameters.ts'

/** By how much the issuer's clock may be behind, in seconds. */
const clockTolerance = 60
/** Claims about the token, not about the user. */
const tokenClaims = new Set(['nonce', 'at_hash', 'c_hash', 's_hash', 'jti'])
const longestId = 255

/** Sends users to an outside issuer, and accepts a code that only this login can use. */
export class OutsideLogin implements AuthMechanism {
  readonly #config: OpenIdConnectConfig
  readonly #client: IssuerClient
  readonly #host: AuthHost
  readonly #logouts: IssuerLogouts

  constructor(config: OpenIdConnectConfig, client: IssuerClient, host: AuthHost) {
    this.#config = config
    this.#client = client
    this.#host = host
    this.#logouts = new IssuerLogouts(config, host)
  }

  async begin(attempt: AuthAttempt): Promise<AuthOutcome> {
    if (attempt.login === undefined) {
      return { kind: 'rejected', reason: 'a login at another site is for browsers', noCredential: true }
    }
    return this.#depart({ ...attempt, login: attempt.login })
  }

  async proceed(attempt: LoginAttempt): Promise<AuthOutcome> {
    const { request, pathInfo, state } = attempt
    if (pathInfo !== '') throw new GatewayError('NOT_FOUND', `nothing at "${pathInfo}"`)
    allowMethods(request.method, 'GET')
    const { query } = request
    if (!query.has('code') && !query.has('error')) return this.#depart(attempt)
    try {
      const configuration = await this.#client.configuration()
      return await this.#arrive(attempt, await this.#redeem(configuration, attempt, state), configuration)
    } catch (error) {
      return this.#refusal(error)
    }
  }

  serve(request: GatewayRequest, pathInfo: string): Promise<GatewayResponse | undefined> {
    return this.#logouts.serve(request, pathInfo)
  }

  async afterLogout(session: SessionHandle): Promise<string | undefined> {
    const { endsSession, afterLogout } = this.#config
    const idToken = endsSession ? await idTokenIn(session, this.#host.name) : undefined
    if (idToken === undefined) return undefined
    const configuration = await this.#client.configuration()
    if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined
    return this.#client.library.buildEndSessionUrl(configuration, {
      id_token_hint: idToken,
      ...(afterLogout === undefined ? {} : { post_logout_redirect_uri: afterLogout }),
    }).href
  }

  async close(): Promise<void> {
    this.#client.close()
  }

  async #depart({ request, subject, login }: AuthAttempt & Pick<LoginAttempt, 'login'>): Promise<AuthOutcome> {
    const { scope, forcesAuthentication, hostedDomain, hintAttribute } = this.#config
    const { library } = this.#client
    const configuration = await this.#client.configuration()
    const [nonce, verifier] = [library.randomNonce(), library.randomPKCECodeVerifier()]
    const redirectUri = `${request.origin}${login.uri}`
    const hint = hintAttribute === undefined ? undefined : subject?.attributes.first(hintAttribute)
    const address = library.buildAuthorizationUrl(configuration, {
      response_type: 'code',
      scope,
      redirect_uri: redirectUri,
      state: login.id,
      nonce,
      code_challenge: await library.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(forcesAuthentication ? { max_age: '0' } : {}),
      ...(hostedDomain === undefined ? {} : { hd: hostedDomain }),
      ...(hint === undefined ? {} : { login_hint: hint }),
    })
    const state: JsonObject = { nonce, verifier, redirectUri, departed: this.#host.clock().getTime() }
    return { kind: 'challenge', response: seeOther(address.href), state }
  }

  async #redeem(configuration: Configuration, { request, login }: LoginAttempt, state: JsonObject) {
    const here = new URL(String(state['redirectUri']))
    here.search = request.query.toString()
    return await this.#client.library.authorizationCodeGrant(configuration, here, {
      expectedState: login.id,
      expectedNonce: String(state['nonce']),
      pkceCodeVerifier: String(state['verifier']),
      idTokenExpected: true,
    })
  }

  async #arrive(
    { root, state }: LoginAttempt,
    tokens: TokenEndpointResponse & { claims(): IDToken | undefined },
    configuration: Configuration,
  ): Promise<AuthOutcome> {
    const { issuer, clientId, hostedDomain, tokenSlot, link } = this.#config
    const claims = tokens.claims()
    if (claims === undefined || tokens.id_token === undefined) return rejected('the issuer gave no id_token')
    const stale = this.#stale(claims, Number(state['departed']))
    if (stale !== undefined) return stale
    const all = await this.#allClaims(claims, tokens.access_token, configuration)
    if (hostedDomain !== undefined && String(all['hd'] ?? '').toLowerCase() !== hostedDomain.toLowerCase()) {
      return rejected('the claim "hd" is of another domain')
    }
    if (typeof all[link.uidAttr] !== 'string') return rejected(`the claim "${link.uidAttr}" is missing or no text`)
    const attributes = claimAttributes(all)
    if (attributes === undefined) return rejected('two claims differ in letter case only')
    const linked = await linkSubject(attributes, link, root, this.#host)
    if (linked.kind === 'refused') return rejected(linked.reason)
    const sid = typeof claims['sid'] === 'string' && claims['sid'].length <= longestId ? claims['sid'] : undefined
    const outside = { issuer, clientId, sub: claims.sub, sid, idToken: tokens.id_token }
    const { slots, marks } = contributionOf(this.#host.name, outside)
    const kept =
      tokenSlot === undefined ? {} : { [tokenSlot]: tokens.access_token, [`${tokenSlot}-id`]: tokens.id_token }
    return {
      kind: 'authenticated',
      subject: linked.subject,
      session: { slots: { ...slots, ...kept }, marks },
    }
  }

  /** An issuer that says when it authenticated must have done so for this login. Some don't say. */
  #stale({ auth_time: time }: IDToken, departed: number): AuthOutcome | undefined {
    if (!this.#config.forcesAuthentication || time === undefined) return undefined
    return time < departed / 1000 - clockTolerance
      ? rejected('the issuer did not authenticate the user again')
      : undefined
  }

  async #allClaims(claims: IDToken, accessToken: string, configuration: Configuration): Promise<JsonObject> {
    const more = this.#config.loadsUserInfo
      ? await this.#client.library.fetchUserInfo(configuration, accessToken, claims.sub)
      : {}
    const named = Object.entries({ ...more, ...claims }).filter(([name]) => !tokenClaims.has(name))
    return Object.fromEntries(named) as JsonObject
  }

  /** A wrong answer of the issuer or the browser is a refusal; an unreachable issuer is not. */
  #refusal(error: unknown): AuthOutcome {
    const { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError, ClientError } =
      this.#client.library
    const cause = error instanceof Error ? error.cause : undefined
    if (error instanceof GatewayError) throw error
    if (cause instanceof GatewayError) throw cause
    if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
      return rejected(`the issuer says ${error.error.slice(0, longestId)}`)
    }
    if (error instanceof ClientError && error.code === 'OAUTH_TIMEOUT') {
      throw new GatewayError('TARGET_TIMEOUT', `the issuer ${this.#config.issuer} took too long`, { cause: error })
    }
    if (error instanceof ClientError || error instanceof WWWAuthenticateChallengeError) {
      this.#host.log.warn('an answer of an outside issuer was refused', { err: error })
      return rejected(`the answer of the issuer is not acceptable: ${error.message}`)
    }
    throw error
  }
}

const rejected = (reason: string): AuthOutcome => ({ kind: 'rejected', reason })

const backChannelPath = '/backchannel-logout'
const frontChannelPath = '/frontchannel-logout'

const longestSid = 255

/** Ends sessions when the issuer ends its own. Returns undefined for a logout of another client. */
class IssuerLogouts {
  readonly #config: OpenIdConnectConfig
  readonly #host: Pick<AuthHost, 'sessions' | 'log'>
  readonly #tokens: LogoutTokens | undefined

  constructor(config: OpenIdConnectConfig, host: AuthHost) {
    this.#config = config
    this.#host = host
    if (config.endpoints !== undefined) return
    const keys = new DiscoveredKeySet({ issuer: config.issuer, clock: host.clock, log: host.log })
    this.#tokens = new LogoutTokens(config, keys, host.clock)
  }

  async serve(request: GatewayRequest, pathInfo: string): Promise<GatewayResponse | undefined> {
    if (pathInfo === backChannelPath) return this.#backChannel(request)
    return pathInfo === frontChannelPath ? this.#frontChannel(request) : undefined
  }

  async #backChannel(request: GatewayRequest): Promise<GatewayResponse | undefined> {
    const tokens = this.#tokens
    if (tokens === undefined) return undefined
    allowMethods(request.method, 'POST')
    const sent = (await readForm(request, 2 * longestToken)).getAll('logout_token')
    const [token = ''] = sent
    if (sent.length > 1 || !tokens.isOurs(token)) return undefined
    try {
      const { kind, value } = await tokens.read(token)
      await this.#end(kind, value, request)
      return answer(200)
    } catch (error) {
      if (!(error instanceof TokenRejected)) throw error
      this.#host.log.warn('a logout token of an issuer was rejected', {
        requestId: request.id,
        reason: error.message,
      })
      return answer(400, { error: 'invalid_request', error_description: error.description })
    }
  }

  /** Only the issuer and the browser know a session id, and it serves no other purpose. */
  async #frontChannel(request: GatewayRequest): Promise<GatewayResponse | undefined> {
    allowMethods(request.method, 'GET')
    const [issuer, sid] = [request.query.get('iss'), request.query.get('sid')]
    if (issuer !== this.#config.issuer || sid === null || sid === '' || sid.length > longestSid) return undefined
    await this.#end('sid', sid, request)
    return answer(200)
  }

  async #end(kind: 'sid' | 'sub', value: string, request: GatewayRequest): Promise<void> {
    const ended = await this.#host.sessions.endMarked(sessionMark(this.#config, kind, value))
    const { issuer } = this.#config
    this.#host.log.info('an issuer ended sessions with a logout token', {
      requestId: request.id,
      issuer,
      sessions: ended,
    })
  }
}

const answer = (status: number, body?: object): GatewayResponse => ({
  status,
  headers: { 'cache-control': 'no-store', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
  body: body === undefined ? undefined : JSON.stringify(body),
})

interface LogoutClient {
  readonly issuer: string
  readonly clientId: string
}

type LogoutToken = { readonly kind: 'sid' | 'sub'; readonly value: string }

const event = 'http://schemas.openid.net/event/backchannel-logout'
const rememberedTokens = 10_000

/** Reads logout tokens (OpenID Connect Back-Channel Logout 1.0, section 2.6). */
class LogoutTokens {
  readonly #client: LogoutClient
  readonly #verifier: TokenVerifier
  readonly #seen: BoundedCache<true>

  constructor(client: LogoutClient, keys: KeySet, clock: Clock) {
    this.#client = client
    const rules = { issuer: client.issuer, audiences: [client.clientId], allowNoIat: false, notBeforeMinutes: 0 }
    this.#verifier = createTokenVerifier(rules, keys, clock)
    this.#seen = new BoundedCache(rememberedTokens, clock)
  }

  /** Whether the token claims to be for this client; several clients may share an address. It is not verified. */
  isOurs(token: string): boolean {
    try {
      const { iss, aud } = decodeJwt(token)
      return iss === this.#client.issuer && [aud].flat().includes(this.#client.clientId)
    } catch {
      return false
    }
  }

  /** Whose sessions end. Throws TokenRejected, and TARGET_UNREACHABLE if the issuer's keys are not available. */
  async read(token: string): Promise<LogoutToken> {
    const { claims, expires } = await this.#verifier.verify(token)
    const { events, nonce, jti, sid, sub } = claims
    if (typeof events !== 'object' || events === null || !Object.hasOwn(events, event)) {
      throw refused('the token has no logout event')
    }
    if (nonce !== undefined) throw refused('an id_token is not a logout token')
    if (typeof jti !== 'string' || jti === '') throw refused('the token has no jti')
    if (this.#seen.get(jti) !== undefined) throw refused('the token was used before')
    const named = { sid, sub }
    for (const kind of ['sid', 'sub'] as const) {
      const value = named[kind]
      if (value === undefined) continue
      if (typeof value !== 'string' || value === '') throw refused(`"${kind}" is not a text`)
      this.#seen.set(jti, true, expires)
      return { kind, value }
    }
    throw refused('the token names neither a session nor a person')
  }
}

const refused = (reason: string): TokenRejected => new TokenRejected(reason, 'The token is not valid')

interface OutsideSession {
  readonly issuer: string
  readonly clientId: string
  readonly sub: string
  readonly sid: string | undefined
  readonly idToken: string
}

/** The mark by which the sessions that the issuer ends are found. */
const sessionMark = (
  { issuer, clientId }: Pick<OutsideSession, 'issuer' | 'clientId'>,
  kind: 'sid' | 'sub',
  value: string,
): string => JSON.stringify(['openid', issuer, clientId, kind, value])

const slotOf = (mechanism: string): string => `openid:${mechanism.replaceAll(/[^\w.-]/g, '_').slice(0, 80)}`

/** The part of the session that remembers the login at the issuer. */
function contributionOf(mechanism: string, outside: OutsideSession): SessionContribution {
  const { sub, sid, idToken } = outside
  const marks = [sessionMark(outside, 'sub', sub)]
  if (sid !== undefined) marks.push(sessionMark(outside, 'sid', sid))
  return { slots: { [slotOf(mechanism)]: { idToken } satisfies JsonObject }, marks }
}

/** The id_token of a login by that mechanism; undefined if the session has none. */
async function idTokenIn(
  session: { read(slot: string): Promise<JsonValue | undefined> },
  mechanism: string,
): Promise<string | undefined> {
  const slot = await session.read(slotOf(mechanism))
  const token = slot !== undefined && isJsonObject(slot) ? slot['idToken'] : undefined
  return typeof token === 'string' ? token : undefined
}
