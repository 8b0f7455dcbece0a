import type { Configuration, IDToken, TokenEndpointResponse } from 'openid-client'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { IssuerClient } from '#modules/auth-mechanisms/openid-connect/issuer-client.ts'
import { IssuerLogouts } from '#modules/auth-mechanisms/openid-connect/issuer-logouts.ts'
import { contributionOf, idTokenIn } from '#modules/auth-mechanisms/openid-connect/outside-session.ts'
import type { OpenIdConnectConfig } from '#modules/auth-mechanisms/openid-connect/parameters.ts'
import { claimAttributes } from '#modules/shared/login/claim-attributes.ts'
import { linkSubject } from '#modules/shared/login/linked-subject.ts'
import type { AuthAttempt, AuthMechanism, AuthOutcome, LoginAttempt } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/filter/http.ts'
import type { ModuleHost } from '#sdk/module/host.ts'

/** By how much the issuer's clock may be behind, in seconds. */
const clockTolerance = 60
/** Claims that speak of the token and not of the person. */
const tokenClaims = new Set(['nonce', 'at_hash', 'c_hash', 's_hash', 'jti'])
const longestId = 255

/** Sends people to an outside issuer, and takes them back with a code that only this login can use. */
export class OutsideLogin implements AuthMechanism {
  readonly #config: OpenIdConnectConfig
  readonly #client: IssuerClient
  readonly #host: ModuleHost
  readonly #logouts: IssuerLogouts

  constructor(config: OpenIdConnectConfig, client: IssuerClient, host: ModuleHost) {
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
    if (request.method !== 'GET') {
      throw new GatewayError('METHOD_NOT_ALLOWED', request.method, { headers: { allow: 'GET' } })
    }
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
      session: { slots: { ...slots, ...kept }, ...(marks === undefined ? {} : { marks }) },
    }
  }

  /** An issuer that says when it authenticated must have done so for this login. Some do not say. */
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

  /** What the issuer or the browser said wrong is a refusal; an issuer that cannot be reached is not. */
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
