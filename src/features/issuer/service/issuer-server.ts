import { decodeJwt } from 'jose/jwt/decode'
import type { Provider } from 'oidc-provider'
import { hasTokenExchange, type IssuerTrust } from '#config/configuration/issuer.ts'
import type { Subject } from '#identity/subject.ts'
import { networkOf } from '#kernel/address.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import { type RateLimits, requireRate } from '#kernel/rate-limit.ts'
import { tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { SessionAccess } from '#sdk/auth/session.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { ChangeSubject } from '#sdk/filter/subject-filter.ts'
import type { GatewayRequest, GatewayResponse } from '#sdk/http/http.ts'
import { readForm } from '#sdk/http/read-form.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import { textsFor } from '#sdk/page/page-texts.ts'
import type { Rule, RuleDecision } from '#sdk/rule/rule.ts'
import {
  accountOf,
  duringCall,
  type IssuerAccount,
  type IssuerCall,
  type Person,
  presentCall,
} from './issuer-account.ts'
import {
  endpointOf,
  grantOf,
  IssuerAudit,
  type IssuerAuditParts,
  type IssuerMeter,
  isEndpoint,
  tokenOutcome,
} from './issuer-audit.ts'
import { passToProvider } from './issuer-bridge.ts'
import { isStep, signedOutNotice } from './issuer-pages.ts'
import { IssuerProviders, type ProviderSource } from './issuer-providers.ts'
import { type IssuerRecords, sessionSeconds } from './issuer-records.ts'
import { hasDeviceGrant, issuerScopes, tokenTimes } from './provider-settings.ts'
import { TokenExchanger } from './token-exchanger.ts'
import type { MintedTokens, RefreshTokenState, TokenMinting } from './token-minting.ts'

export interface IssuerServerParts extends ProviderSource, IssuerAuditParts {
  readonly claims: Mapping
  /** What the filters of the issuer make of a subject. */
  readonly changeSubject: ChangeSubject
  readonly sessions: Pick<SessionAccess, 'end'>
  readonly rateLimits: RateLimits
  readonly meter: IssuerMeter
  /** The current user of our session of that id; undefined if it has ended. */
  present(sessionId: string, asker: Asker): Promise<Subject | undefined>
  /** Counts as use of a session that no cookie leads to. */
  use(sessionId: string): Promise<void>
  decide(subject: Subject, rules: readonly Rule[]): Promise<RuleDecision>
}

type Asker = Pick<GatewayRequest, 'id' | 'headers' | 'host' | 'remoteAddress'>

/** For token state that is read outside of a request to the issuer. */
const nobody: Asker = { id: '', headers: {}, host: '', remoteAddress: '' }
const formBytes = 64 * 1024
/** How many device codes one user may type, over all logins. */
const typedCodes = { burst: 10, perMinute: 10 }
/** How many flows anonymous callers may start per address: each is a row in storage. */
const beginnings = { burst: 120, perMinute: 120 }
/** The cache header of documents that rarely change. */
const documentCaching = 'public, max-age=300'

/** One of Gatehouse's own OpenID Connect issuers. */
export class IssuerServer {
  readonly #parts: IssuerServerParts
  readonly #providers: IssuerProviders
  readonly #audit: IssuerAudit
  readonly #exchanger: TokenExchanger

  constructor(parts: IssuerServerParts) {
    this.#parts = parts
    this.#providers = new IssuerProviders(parts, {
      isLive: (id) => noted(async () => (await parts.present(id, presentAsker())) !== undefined),
      present: (id, stored) => noted(() => this.#present(id, stored)),
    })
    this.#audit = new IssuerAudit(parts)
    this.#exchanger = new TokenExchanger({
      ...parts,
      audit: this.#audit,
      records: () => this.#providers.records(),
      accountOf: (subject) => this.#accountOf(subject),
    })
  }

  /** The name of its Application. */
  get application(): string {
    return this.#parts.config.application
  }

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    const { meter, config } = this.#parts
    const started = performance.now()
    try {
      const answer = await this.#answer(exchange)
      if (exchange.pathInfo === '/token') await this.#count(exchange.request, answer)
      return answer
    } finally {
      meter.answered(config.name, endpointOf(exchange.pathInfo), performance.now() - started)
    }
  }

  async #answer(exchange: Exchange): Promise<GatewayResponse> {
    const { pathInfo: path, request } = exchange
    // The provider also accepts other letter cases and a trailing slash, which would bypass the checks below and the
    // audit.
    if (!isEndpoint(path)) throw new GatewayError('NOT_FOUND', 'the issuer has no endpoint at this path')
    if (path === '/certs' && request.method === 'GET') return this.#keys()
    if (/^\/device(?:\/|$)/.test(path) && !hasDeviceGrant(this.#parts.config)) {
      throw new GatewayError('NOT_FOUND', 'no application of the issuer has enableDeviceGrant')
    }
    if (!isPersonal(path)) {
      try {
        if (path === '/device/auth') await this.#countBeginning(request)
        if (path === '/token' && (await this.#isExchange(request))) return await this.#exchanger.answer(exchange)
        return await this.#pass(exchange, undefined)
      } catch (thrown) {
        return this.#oauthFailure(asGatewayError(thrown))
      }
    }
    if (path === '/auth' && request.method === 'POST') return this.#asGet(exchange)
    const person = await this.#person(exchange)
    if (person === undefined && path.startsWith('/device')) {
      const login = await exchange.requireLogin?.(this.#parts.config.deviceChain)
      if (login !== undefined) return login
    }
    if (person === undefined && path === '/session/end') return this.#signedOut(request)
    if (person === undefined) await this.#countBeginning(request)
    else if (path === '/device' && request.method === 'POST') {
      const key = JSON.stringify([this.#parts.config.name, exchange.subject.identity])
      await requireRate(this.#parts.rateLimits, 'device codes typed by one user', key, typedCodes)
    }
    return await this.#pass(exchange, person)
  }

  async mint(call: TokenMinting): Promise<MintedTokens | undefined> {
    const { config } = this.#parts
    const records = await this.#providers.records()
    const trust = this.#trust(call.trust)
    const { request, subject } = call
    const event = { issuer: config.name, request, clientId: trust.clientId, how: call.how }
    if (!(await this.#parts.decide(subject, config.rules)).allowed) {
      await this.#audit.refused({ ...event, account: { uid: subject.uid, sub: '' } })
      this.#parts.meter.tokens(config.name, call.how, 'refused')
      return undefined
    }
    const account = await this.#accountOf(subject)
    const { provider } = await this.#providers.at(call.origin ?? request.origin)
    const { jti, ...tokens } = await mintTokens({ ...call, provider, records, trust, account })
    await this.#remember(jti, call.sessionId, trust)
    await this.#parts.use(call.sessionId)
    await this.#audit.issued({ ...event, account, jti })
    this.#parts.meter.tokens(config.name, call.how, 'issued')
    return tokens
  }

  async refreshState(refreshToken: string): Promise<RefreshTokenState> {
    const records = await this.#providers.records()
    const found = await records.adapter('RefreshToken').find(refreshToken)
    if (!found || found.sessionUid === undefined) return 'ended'
    if ((await records.accountOf(found.sessionUid)) === undefined) return 'ended'
    return found.consumed === undefined ? 'unused' : 'used'
  }

  async #pass(exchange: Exchange, person: Person | undefined): Promise<GatewayResponse> {
    const { request, pathInfo: path } = exchange
    const query = new URLSearchParams(request.query)
    const userCode = path === '/device' && request.method === 'GET' ? (query.get('user_code') ?? undefined) : undefined
    if (userCode !== undefined) query.delete('user_code')
    const { handler } = await this.#providers.at(request.origin)
    const ask = async () => {
      const call: IssuerCall = { exchange, person, userCode }
      return { call, answer: await duringCall(call, () => passToProvider(handler, exchange, person?.sessionId, query)) }
    }
    let { call, answer } = await ask()
    // The refresh token now counts as just replaced.
    if (call.raced === true) ({ call, answer } = await ask())
    if (call.failure !== undefined) throw call.failure
    if (call.answer !== undefined) return call.answer
    if (call.endsSession === true && person !== undefined) {
      await this.#parts.sessions.end(exchange.subject.identity, person.sessionId)
      await this.#audit.ended({ issuer: this.#parts.config.name, request, account: person.account })
    }
    if (path === '/token' && answer.status === 200) await this.#auditTokens(request, call)
    if (path.startsWith('/.well-known/') && answer.status === 200) {
      return { ...answer, headers: { ...answer.headers, 'cache-control': documentCaching } }
    }
    return answer
  }

  /** Only where a trust offers it; elsewhere the provider answers that it does not know the grant. */
  async #isExchange(request: GatewayRequest): Promise<boolean> {
    if (request.method !== 'POST' || !hasTokenExchange(this.#parts.config)) return false
    const form = await readForm(request, formBytes).catch(() => undefined)
    return form?.get('grant_type') === tokenExchangeGrant
  }

  async #count(request: GatewayRequest, { status, body }: GatewayResponse): Promise<void> {
    const form = await readForm(request, formBytes).catch(() => undefined)
    const outcome = tokenOutcome(status, body)
    this.#parts.meter.tokens(this.#parts.config.name, grantOf(form?.get('grant_type') ?? ''), outcome)
  }

  async #auditTokens(request: GatewayRequest, { issued, replacedBy }: IssuerCall): Promise<void> {
    if (issued === undefined) throw new GatewayError('INTERNAL', 'tokens were issued without a user')
    const form = await readForm(request, formBytes)
    const how = (form.get('grant_type') ?? '').slice(0, 100)
    const trust = this.#parts.config.trusts.find(({ clientId }) => clientId === issued.clientId)
    if (issued.jti !== undefined && trust !== undefined) await this.#remember(issued.jti, issued.sessionId, trust)
    if (issued.sessionId !== undefined) await this.#parts.use(issued.sessionId)
    const detail = replacedBy === undefined ? {} : { detail: { refreshToken: 'just replaced' } }
    await this.#audit.issued({ issuer: this.#parts.config.name, request, how, ...issued, ...detail })
  }

  /** So that the ID token can be exchanged while its session lasts. */
  async #remember(jti: string, sessionId: string | undefined, { tokenSeconds }: IssuerTrust): Promise<void> {
    if (sessionId === undefined || !hasTokenExchange(this.#parts.config)) return
    await (await this.#providers.records()).rememberIdToken(jti, { sessionId, exchanged: false }, tokenSeconds)
  }

  async #accountOf(subject: Subject): Promise<IssuerAccount> {
    const { config, claims, changeSubject } = this.#parts
    const account = await accountOf(await changeSubject(subject), claims)
    const amr = config.amr?.get(subject.chain)
    return amr === undefined ? account : { ...account, claims: { ...account.claims, amr: [amr] } }
  }

  /** Looks up a directory user again and evaluates the rules again; for other users nothing new is known. */
  async #present(sessionId: string, stored: IssuerAccount): Promise<IssuerAccount | undefined> {
    const { config, decide, present } = this.#parts
    const request = presentCall()?.exchange.request
    const subject = await present(sessionId, presentAsker())
    if (subject?.link === undefined) return subject && stored
    if ((await decide(subject, config.rules)).allowed) return await this.#accountOf(subject).catch(withoutSub)
    if (request !== undefined) {
      await this.#audit.refused({ issuer: config.name, request, account: stored, clientId: '', how: 'renewal' })
    }
    return undefined
  }

  /** Undefined without a login. Throws ACCESS_DENIED for a user that no rule allows, who may still log out. */
  async #person(exchange: Exchange): Promise<Person | undefined> {
    const { session, subject, request, pathInfo: path } = exchange
    if (session === undefined) return undefined
    const { config, decide } = this.#parts
    if (!path.startsWith('/session/end') && !(await decide(subject, config.rules)).allowed) {
      const account = { uid: subject.uid, sub: '' }
      const clientId = (request.query.get('client_id') ?? '').slice(0, 100)
      await this.#audit.refused({ issuer: config.name, request, account, clientId, how: 'authorization' })
      throw new GatewayError('ACCESS_DENIED', `no rule of the issuer "${config.name}" lets "${subject.uid}"`, {
        publicText: textsFor(request)('issuer.denied'),
      })
    }
    const { id: sessionId, authenticated, level } = session
    return { sessionId, level, authenticated, account: await this.#accountOf(subject) }
  }

  /** OpenID Connect lets applications POST; a browser that has to log in returns with GET. */
  async #asGet({ request, mount }: Exchange): Promise<GatewayResponse> {
    const form = await readForm(request, formBytes)
    return seeOther(`${mount}/auth?${form}`)
  }

  /** Without a login there is no one to ask; a registered address is still allowed. */
  #signedOut(request: GatewayRequest): GatewayResponse {
    const { query } = request
    const uri = query.get('post_logout_redirect_uri')
    const client = query.get('client_id') ?? audienceOf(query.get('id_token_hint'))
    const trust = this.#parts.config.trusts.find(({ clientId }) => clientId === client)
    if (uri === null || trust?.postLogoutRedirectUris.includes(uri) !== true) {
      return signedOutNotice(request)
    }
    const address = new URL(uri)
    const state = query.get('state')
    if (state !== null) address.searchParams.set('state', state)
    return seeOther(address.href)
  }

  async #countBeginning({ remoteAddress }: GatewayRequest): Promise<void> {
    const { config, rateLimits } = this.#parts
    const key = JSON.stringify([config.name, networkOf(remoteAddress)])
    await requireRate(rateLimits, 'flows begun at an issuer from one address', key, beginnings)
  }

  async #keys(): Promise<GatewayResponse> {
    const { keys, maxAgeSeconds } = await this.#parts.tokenKeys.documents(this.#parts.config.keys.endpoint)
    return {
      status: 200,
      headers: {
        'content-type': 'application/jwk-set+json; charset=utf-8',
        'cache-control': `public, max-age=${maxAgeSeconds}`,
        'access-control-allow-origin': '*',
      },
      body: JSON.stringify(keys),
    }
  }

  #oauthFailure(error: GatewayError): GatewayResponse {
    if (!error.isRefusal) this.#parts.log.error('an issuer failed', { err: error })
    return {
      status: error.status,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        ...(error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) }),
        ...error.headers,
      },
      body: JSON.stringify({
        error: error.isRefusal ? 'invalid_request' : 'server_error',
        error_description: error.publicText,
      }),
    }
  }

  #trust(name: string): IssuerTrust {
    const { name: issuer, trusts } = this.#parts.config
    const found = trusts.find((trust) => trust.name === name) ?? trusts.find(({ clientId }) => clientId === name)
    if (found === undefined) throw new GatewayError('INTERNAL', `the issuer "${issuer}" has no trust "${name}"`)
    return found
  }
}

const presentAsker = (): Asker => presentCall()?.exchange.request ?? nobody

/** Notes failures within a request to the provider for the response. */
async function noted<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    const call = presentCall()
    if (call !== undefined) call.failure ??= asGatewayError(thrown)
    throw thrown
  }
}

function withoutSub(error: unknown): undefined {
  if (!(error instanceof GatewayError) || error.code !== 'ACCESS_DENIED') throw error
}

/** Paths for users, not for applications. */
const isPersonal = (path: string): boolean =>
  path === '/auth' ||
  path.startsWith('/auth/') ||
  (path.startsWith('/device') && path !== '/device/auth') ||
  path === '/session/end' ||
  path.startsWith('/session/end/') ||
  isStep(path)

/** Not verified: it only selects the application whose registered addresses apply. */
function audienceOf(token: string | null): string | undefined {
  try {
    const body: unknown = JSON.parse(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { aud } = body as { aud?: unknown }
    return typeof aud === 'string' ? aud : undefined
  } catch {
    return undefined
  }
}

interface Minting {
  readonly provider: Provider
  readonly records: IssuerRecords
  readonly trust: IssuerTrust
  readonly account: IssuerAccount
  readonly sessionId: string
  readonly authenticated: Date
}

/** Issues what the application would get for a code. The refresh token ends with the session. */
async function mintTokens(minting: Minting): Promise<MintedTokens & { readonly jti: string }> {
  const { provider, trust, account } = minting
  const client = await provider.Client.find(trust.clientId)
  if (client === undefined) throw new GatewayError('INTERNAL', `there is no client "${trust.clientId}"`)
  const jti = newId()
  const claims = { ...account.claims, sub: account.sub, ...tokenTimes(trust), jti, auth_time: secondsOf(minting) }
  const token = new provider.IdToken(claims, { client })
  Object.assign(token, { scope: issuerScopes.join(' ') })
  const idToken = await token.issue({ use: 'idtoken' })
  const content = decodeJwt(idToken)
  return {
    jti,
    issuer: provider.issuer,
    clientId: trust.clientId,
    idToken,
    expires: new Date((content.exp ?? 0) * 1000),
    claims: content as JsonObject,
    ...(await refreshTokenFor(minting, client)),
  }
}

async function refreshTokenFor(
  minting: Minting,
  client: NonNullable<Awaited<ReturnType<Provider['Client']['find']>>>,
): Promise<Pick<MintedTokens, 'refreshToken' | 'refreshExpires'>> {
  const { provider, records, account, sessionId, authenticated } = minting
  const { clientId } = client
  const scope = issuerScopes.join(' ')
  const present = await records.sessionGrant(sessionId, clientId, account)
  const grant =
    (present === undefined ? undefined : await provider.Grant.find(present)) ??
    new provider.Grant({ accountId: account.sub, clientId })
  grant.addOIDCScope(scope)
  const grantId = await grant.save()
  const now = Math.floor(Date.now() / 1000)
  const person = { sessionId, level: 0, authenticated, account }
  await records.writeSession(person, {
    jti: sessionId,
    iat: now,
    exp: now + sessionSeconds,
    loginTs: secondsOf(minting),
    authorizations: { [clientId]: { grantId } },
  })
  const token = new provider.RefreshToken({
    accountId: account.sub,
    client,
    grantId,
    scope,
    sessionUid: sessionId,
    expiresWithSession: true,
    authTime: secondsOf(minting),
    gty: 'authorization_code',
    rotations: 0,
  } as ConstructorParameters<Provider['RefreshToken']>[0])
  const refreshToken = await token.save()
  return { refreshToken, refreshExpires: new Date((now + sessionSeconds) * 1000) }
}

const secondsOf = ({ authenticated }: Pick<Minting, 'authenticated'>): number =>
  Math.floor(authenticated.getTime() / 1000)
