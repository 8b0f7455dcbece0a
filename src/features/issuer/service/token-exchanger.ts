import { hash, timingSafeEqual } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { ExchangeRights, IssuerConfig, IssuerTrust } from '#config/configuration/issuer.ts'
import type { TokenKeys } from '#config/configuration/token-keys.ts'
import type { Subject } from '#identity/subject.ts'
import { networkOf } from '#kernel/address.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { type RateLimits, requireRate } from '#kernel/rate-limit.ts'
import { chooseKey, readKeySet } from '#protocols/jwt/keys.ts'
import { createTokenVerifier, otherAudience, TokenRejected } from '#protocols/jwt/token-verifier.ts'
import { signedToken } from '#protocols/sts/signed-token.ts'
import {
  longestForm,
  longestSubjectToken,
  oauthErrors,
  oauthRefusal,
  readUserTokenExchange,
  tokenExchangeAnswer,
} from '#protocols/sts/token-exchange.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import type { IssuerAccount } from './issuer-account.ts'
import type { IssuerAudit } from './issuer-audit.ts'
import type { IssuerRecords, KnownIdToken } from './issuer-records.ts'

interface ExchangerParts {
  readonly config: IssuerConfig
  readonly tokenKeys: TokenKeys
  readonly audit: IssuerAudit
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
  records(): Promise<IssuerRecords>
  accountOf(subject: Subject): Promise<IssuerAccount>
  /** The current user of our session of that id; undefined if it has ended. */
  present(sessionId: string, asker: GatewayRequest): Promise<Subject | undefined>
  decide(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision>
  /** The login level that the application requires. */
  level(trust: IssuerTrust): number
}

/** What is known of an exchange so far, for the audit. */
interface Trail {
  client: string
  audience: string
  mode: 'impersonation' | 'delegation' | undefined
  /** The login of the caller, or of the actor. */
  caller: string
  account: Pick<IssuerAccount, 'uid' | 'sub'>
}

type ExchangingTrust = IssuerTrust & { readonly exchange: ExchangeRights }
type Form = ReturnType<typeof readUserTokenExchange>

/** The user of a verified token, as they are now. */
interface TokenUser {
  readonly claims: JWTPayload
  readonly expires: Date
  readonly known: KnownIdToken
  readonly subject: Subject
  readonly account: IssuerAccount
}

/** Exchanges per address: each is a row in the audit, and a refused caller is not known. */
const exchanges = { burst: 600, perMinute: 600 }
/** How many actors a token may name, one within the other. */
const mostActors = 8
const longestName = 100
const longestReason = 500

/**
 * Exchanges ID tokens of this issuer for tokens of other applications of it (RFC 8693). The caller is authenticated by
 * the chain of its trust; for a delegation the secret of the trust will do, since the actor has a token of its own.
 */
export class TokenExchanger {
  readonly #parts: ExchangerParts

  constructor(parts: ExchangerParts) {
    this.#parts = parts
  }

  /** Never rejects: refusals and failures are responses too. */
  async answer(exchange: Exchange): Promise<GatewayResponse> {
    const { request } = exchange
    const trail: Trail = { client: '', audience: '', mode: undefined, caller: '', account: { uid: '', sub: '' } }
    try {
      const { config, rateLimits } = this.#parts
      const key = JSON.stringify([config.name, networkOf(request.remoteAddress)])
      await requireRate(rateLimits, 'token exchanges from one address', key, exchanges)
      return await this.#exchange(exchange, trail)
    } catch (thrown) {
      const error = asGatewayError(thrown)
      if (!error.isRefusal) this.#parts.log.error('a token exchange failed', { err: error, requestId: request.id })
      else if (error.code !== 'TOO_MANY_REQUESTS') await this.#refused(request, trail, error)
      const { headers, body } = oauthErrors(error)
      const retry = error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) }
      return { status: error.status, headers: { ...headers, ...retry, ...error.headers }, body }
    }
  }

  async #exchange(exchange: Exchange, trail: Trail): Promise<GatewayResponse> {
    const { request } = exchange
    const form = readUserTokenExchange(header(request, 'content-type'), await request.body(longestForm))
    const { audience } = form
    const credentials = readCredentials(form, request)
    trail.audience = audience.slice(0, longestName)
    trail.client = credentials.clientId.slice(0, longestName)
    trail.mode = form.actorToken === undefined ? 'impersonation' : 'delegation'
    const trust = this.#trust(credentials.clientId)
    await this.#authenticate(trust, trail.mode, credentials, exchange, trail)
    const target = this.#target(trust, audience)
    const actor = form.actorToken === undefined ? undefined : await this.#actor(form.actorToken, trust, request, trail)
    const user = await this.#subject(form.subjectToken, trust, target, request, trail)
    const { token, seconds } = await this.#issue(user, actor, target, request, trail)
    return {
      status: 200,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache' },
      body: tokenExchangeAnswer({ token, expiresInSeconds: seconds, idToken: token }, form.requestedType),
    }
  }

  #trust(clientId: string): ExchangingTrust {
    const trust = this.#parts.config.trusts.find((one) => one.clientId === clientId)
    if (trust === undefined) throw unknownClient('the issuer has no such client')
    const { exchange } = trust
    if (exchange === undefined) throw oauthRefusal('unauthorized_client', 'This client may not exchange tokens.')
    return { ...trust, exchange }
  }

  async #authenticate(
    trust: ExchangingTrust,
    mode: 'impersonation' | 'delegation',
    credentials: Credentials,
    exchange: Exchange,
    trail: Trail,
  ): Promise<void> {
    const { secret, scheme } = credentials
    if (secret !== undefined && !isSecretOf(trust, secret)) throw unknownClient('the client secret is wrong', scheme)
    if (secret === undefined || mode === 'impersonation') {
      const caller = await exchange.authenticate?.(trust.chain)
      if (caller === undefined || caller.level <= 0) throw unknownClient('the chain did not authenticate the caller')
      trail.caller = caller.uid
      await this.#allow(caller, trust.exchange.clientRules, 'No rule allows the client to exchange tokens.')
    }
    if (!trust.exchange[mode]) {
      throw oauthRefusal('unauthorized_client', `This client may not exchange tokens for ${mode}.`)
    }
  }

  #target({ exchange }: ExchangingTrust, audience: string): IssuerTrust {
    const found = this.#parts.config.trusts.find(({ clientId }) => clientId === audience)
    if (found === undefined || !exchange.audiences.includes(audience)) {
      throw oauthRefusal('invalid_target', 'The client may not exchange tokens for this audience.')
    }
    return found
  }

  /** A token that was itself exchanged proves that its user logged in, but not that the user is the caller. */
  async #actor(token: string, trust: ExchangingTrust, request: GatewayRequest, trail: Trail): Promise<TokenUser> {
    const actor = await this.#user(token, 'actor_token', [trust.clientId], request, (uid) => {
      trail.caller = uid
    })
    if (actor.known.exchanged) throw notAccepted('actor_token', 'It was exchanged for another token')
    await this.#allow(actor.subject, trust.exchange.clientRules, 'No rule allows the actor to exchange tokens.')
    return actor
  }

  async #subject(
    token: string,
    trust: ExchangingTrust,
    target: IssuerTrust,
    request: GatewayRequest,
    trail: Trail,
  ): Promise<TokenUser> {
    const { config, level } = this.#parts
    const audiences = config.trusts.map(({ clientId }) => clientId)
    const user = await this.#user(token, 'subject_token', audiences, request, (uid) => {
      trail.account = { uid, sub: '' }
    })
    trail.account = user.account
    await this.#allow(user.subject, trust.exchange.subjectRules, 'No rule allows tokens of this user to be exchanged.')
    if (user.subject.level < level(target)) {
      throw denied('The audience requires a stronger login of the user.', `level ${user.subject.level} is too low`)
    }
    return user
  }

  /** The user of a token of this issuer that is valid now, in a session that has not ended. */
  async #user(
    token: string,
    name: TokenName,
    audiences: readonly string[],
    request: GatewayRequest,
    found: (uid: string) => void,
  ): Promise<TokenUser> {
    const { config, present, accountOf } = this.#parts
    const { claims, expires } = await this.#verify(token, name, audiences, request)
    const { jti, sub } = claims
    const records = await this.#parts.records()
    const known = jti === undefined ? undefined : await records.idToken(jti)
    const subject = known && (await present(known.sessionId, request))
    if (known === undefined || subject === undefined) throw notAccepted(name, 'Its session has ended')
    found(subject.uid)
    await this.#allow(subject, config.rules, 'No rule of the issuer allows the user.')
    const account = await accountOf(subject)
    if (account.sub !== sub) throw notAccepted(name, 'Its user has another sub now')
    return { claims, expires, known, subject, account }
  }

  async #verify(token: string, name: TokenName, audiences: readonly string[], { origin }: GatewayRequest) {
    const { config, tokenKeys, clock } = this.#parts
    if (token.length > longestSubjectToken) throw notAccepted(name, 'It is too long')
    const keys = readKeySet({ keys: [...(await tokenKeys.published(config.keys.endpoint))] })
    // The clock of another replica may be ahead, but no token lasts longer for it.
    const rules = { issuer: `${origin}${config.mount}`, audiences, allowNoIat: false, notBeforeMinutes: 1 }
    const find = async (algorithm: string, kid: string | undefined) => chooseKey(keys, algorithm, kid)
    const verifier = createTokenVerifier({ ...rules, clockTolerance: 0 }, { find, fresh: () => true }, clock)
    try {
      return await verifier.verify(token)
    } catch (error) {
      if (!(error instanceof TokenRejected)) throw error
      // The list of audiences would name every application.
      const isOther = error.description === otherAudience(audiences)
      throw notAccepted(name, isOther ? 'The token is for another audience' : error.description, error.message)
    }
  }

  async #issue(
    user: TokenUser,
    actor: TokenUser | undefined,
    target: IssuerTrust,
    request: GatewayRequest,
    trail: Trail,
  ): Promise<{ readonly token: string; readonly seconds: number }> {
    const { config, tokenKeys, clock, audit } = this.#parts
    const { account, known } = user
    const now = Math.floor(clock().getTime() / 1000)
    // Otherwise a token could be renewed by exchanging it again and again.
    const left = known.exchanged ? Math.floor(user.expires.getTime() / 1000) - now : target.tokenSeconds
    const seconds = Math.max(1, Math.min(target.tokenSeconds, left))
    const jti = newId()
    const act = actorsOf(user, actor)
    const { auth_time: authenticated } = user.claims
    const claims = new Map<string, JsonValue>([
      ...Object.entries(account.claims),
      ['iss', `${request.origin}${config.mount}`],
      ['sub', account.sub],
      ['aud', target.clientId],
      ['iat', now],
      ['exp', now + seconds],
      ['jti', jti],
      ...(target.skewSeconds === 0 ? [] : [['nbf', now - target.skewSeconds] as const]),
      ...(typeof authenticated === 'number' ? [['auth_time', authenticated] as const] : []),
      ...(act === undefined ? [] : [['act', act] as const]),
    ])
    const key = await tokenKeys.active(config.keys.endpoint)
    const token = await signedToken(claims, key)
    await (await this.#parts.records()).rememberIdToken(jti, { sessionId: known.sessionId, exchanged: true }, seconds)
    const detail = { ...detailOf(trail), kid: key.kid, ...(actor === undefined ? {} : { actor: actor.account.sub }) }
    await audit.issued({ ...this.#event(request, trail), jti, detail })
    return { token, seconds }
  }

  async #allow(subject: Subject, rules: readonly Rule[], text: string): Promise<void> {
    if (!(await this.#parts.decide(subject, rules)).allowed) throw denied(text, `no rule allows ${subject.dn}`)
  }

  #refused(request: GatewayRequest, trail: Trail, error: GatewayError): Promise<void> {
    const detail = {
      ...detailOf(trail),
      error: error.keyword ?? error.code.toLowerCase(),
      why: error.message.slice(0, longestReason),
    }
    return this.#parts.audit.refused({ ...this.#event(request, trail), detail })
  }

  #event(request: GatewayRequest, { account, audience, caller }: Trail) {
    const { name } = this.#parts.config
    return { issuer: name, request, account, clientId: audience, how: 'token exchange', requester: caller }
  }
}

type TokenName = 'subject_token' | 'actor_token'

interface Credentials {
  readonly clientId: string
  readonly secret: string | undefined
  /** Present if they were in the header, so that a refusal names the scheme. */
  readonly scheme?: 'Basic'
}

/** A client that names itself in the form may use the header for the credentials of its chain. */
function readCredentials({ clientId, clientSecret }: Form, request: GatewayRequest): Credentials {
  if (clientId !== undefined) return { clientId, secret: clientSecret }
  const encoded = /^Basic +([A-Za-z0-9+/=]{1,4096}) *$/i.exec(header(request, 'authorization') ?? '')?.[1]
  const [, id, secret] = /^([^:]+):(.+)$/s.exec(Buffer.from(encoded ?? '', 'base64').toString('utf8')) ?? []
  if (id === undefined || secret === undefined) throw unknownClient('the request names no client')
  if (clientSecret !== undefined) {
    throw oauthRefusal('invalid_request', 'The client must authenticate in one way only.')
  }
  return { clientId: formDecoded(id), secret: formDecoded(secret), scheme: 'Basic' }
}

/** RFC 6749 2.3.1 encodes both parts like a form. */
function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw unknownClient('the credentials of the client are not encoded as RFC 6749 says', 'Basic')
  }
}

function isSecretOf({ clientSecret }: IssuerTrust, given: string): boolean {
  if (clientSecret === undefined) return false
  const [one, other] = [clientSecret, given].map((text) => hash('sha256', text, 'buffer'))
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}

const unknownClient = (detail: string, scheme?: 'Basic'): GatewayError =>
  new GatewayError('AUTH_REJECTED', detail, {
    keyword: 'invalid_client',
    publicText: 'The client is unknown, or its credentials were not accepted.',
    headers: scheme === undefined ? undefined : { 'www-authenticate': `${scheme} realm="token"` },
  })

const denied = (publicText: string, detail: string): GatewayError =>
  new GatewayError('ACCESS_DENIED', detail, { keyword: 'access_denied', publicText })

const notAccepted = (name: TokenName, text: string, detail = text): GatewayError =>
  oauthRefusal('invalid_grant', `The ${name} is not accepted. ${text}.`, `${name}: ${detail}`)

const detailOf = ({ client, mode }: Trail): JsonObject => ({ client, ...(mode === undefined ? {} : { mode }) })

/**
 * The claim `act` (RFC 8693 4.1): who acts now, and within it who acted before. An impersonation keeps earlier actors, so
 * that it can't hide a delegation.
 */
function actorsOf({ claims, known }: TokenUser, actor: TokenUser | undefined): JsonObject | undefined {
  const { act } = claims
  const before = known.exchanged && isJsonObject(act) ? act : undefined
  if (actor === undefined) return before
  const all: JsonObject = { sub: actor.account.sub, ...(before === undefined ? {} : { act: before }) }
  let depth = 0
  for (let one: JsonValue | undefined = all; one !== undefined && isJsonObject(one); one = one['act']) depth++
  if (depth > mostActors) throw notAccepted('subject_token', 'It names too many actors already')
  return all
}
