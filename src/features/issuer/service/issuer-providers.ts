import { createPublicKey, type KeyObject } from 'node:crypto'
import type { ExternalSigningKey, JWKS, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { hasTokenExchange, type IssuerConfig, type IssuerTrust } from '#config/configuration/issuer.ts'
import type { PublicTokenKey, TokenKey, TokenKeys } from '#config/configuration/token-keys.ts'
import type { Clock } from '#kernel/clock.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import { presentCall } from './issuer-account.ts'
import type { Handler } from './issuer-bridge.ts'
import { IssuerPages, isStep, takeStep } from './issuer-pages.ts'
import { IssuerRecords, type RecordParts } from './issuer-records.ts'
import { providerSettings } from './provider-settings.ts'

interface Mounted {
  readonly provider: Provider
  readonly handler: Handler
}

export interface ProviderSource extends Pick<RecordParts, 'store' | 'box'> {
  readonly config: IssuerConfig
  readonly tokenKeys: TokenKeys
  readonly keys: Pick<KeySource, 'secretKeys'>
  readonly clock: Clock
  readonly log: Logger
  level(trust: IssuerTrust): number
}

type People = Pick<RecordParts, 'isLive' | 'present'>

/** The maximum number of origins per issuer, each with a provider. Their state is in storage. */
const mostProviders = 8
/** For pages of the provider, which adds the hash of its own script. */
const pagePolicy = "default-src 'none'; script-src 'none'; base-uri 'none'; frame-ancestors 'none'"

/** The library's objects for one issuer. Loaded on first use. */
export class IssuerProviders {
  readonly #source: ProviderSource
  readonly #people: People
  readonly #made = new Map<string, Mounted>()
  #records: IssuerRecords | undefined

  constructor(source: ProviderSource, people: People) {
    this.#source = source
    this.#people = people
  }

  async records(): Promise<IssuerRecords> {
    if (this.#records === undefined) {
      const { errors } = await import('oidc-provider')
      const { config, store, box, clock } = this.#source
      this.#records = new IssuerRecords({
        issuer: config.name,
        store,
        box,
        clock,
        graceMillis: config.refreshGraceMillis,
        ...this.#people,
        alreadyUsed: () => new errors.InvalidGrant('it was used before'),
      })
    }
    return this.#records
  }

  /** The provider of an origin, with the current signing key. */
  async at(origin: string): Promise<Mounted> {
    const { config, tokenKeys } = this.#source
    const { endpoint } = config.keys
    const [active, published] = [await tokenKeys.active(endpoint), await tokenKeys.published(endpoint)]
    const id = JSON.stringify([origin, active.kid, published.map((key) => key['kid'])])
    let mounted = this.#made.get(id)
    if (mounted === undefined) {
      const library = await import('oidc-provider')
      const jwks = providerKeys(active, published, library.ExternalSigningKey)
      const pages = new IssuerPages(config.mount, (clientId) => this.#label(clientId))
      const settings = providerSettings({
        config,
        records: await this.records(),
        pages,
        jwks,
        alg: active.alg,
        cookieKeys: await this.#cookieKeys(),
        policy: library.interactionPolicy,
        level: (trust) => this.#source.level(trust),
      })
      const provider = new library.Provider(`${origin}${config.mount}`, settings)
      this.#prepare(provider, pages)
      mounted = { provider, handler: provider.callback() }
      this.#keep(id, mounted)
    }
    return mounted
  }

  #prepare(provider: Provider, pages: IssuerPages): void {
    const { config, clock, log } = this.#source
    // We set the headers that it reads for that.
    provider.proxy = true
    provider.silent = true
    provider.use(async (ctx, next) => {
      ctx.set('content-security-policy', pagePolicy)
      if (ctx.method !== 'GET' || !isStep(ctx.path)) {
        await next()
        nameRefusedGrant(ctx)
        showSuccessor(ctx)
        if (ctx.path === '/token') await this.#unifyTokens(ctx as unknown as KoaContextWithOIDC)
        if (hasTokenExchange(config)) announceExchange(ctx)
        return
      }
      await takeStep(provider, ctx as unknown as KoaContextWithOIDC, { config, pages, clock })
    })
    // Not in its types.
    const refreshTokens = provider.RefreshToken.prototype as unknown as { generateTokenId(): string }
    const newTokenId = refreshTokens.generateTokenId
    refreshTokens.generateTokenId = function () {
      return presentCall()?.successor ?? newTokenId.call(this)
    }
    const failed = (err: unknown) => log.error('an issuer failed', { issuer: config.name, err })
    provider.on('server_error', (_ctx, err) => failed(err))
    Object.assign(provider, { onerror: failed })
    provider.on('end_session.success', (ctx) => {
      const call = presentCall()
      if (call !== undefined && ctx.oidc.params?.['logout'] !== undefined) call.endsSession = true
    })
  }

  /**
   * The access token of a public client is its ID token, as that of OpenUnison is for all: openunison-cli passes it to
   * the API server after a refresh.
   */
  async #unifyTokens(ctx: KoaContextWithOIDC): Promise<void> {
    const { status, body, oidc } = ctx
    if (status !== 200 || !isJsonObject(body) || oidc.client?.clientAuthMethod !== 'none') return
    const { access_token: accessToken, id_token: idToken } = body
    if (typeof accessToken !== 'string' || typeof idToken !== 'string') return
    await (await this.records()).renameAccessToken(accessToken, idToken)
    ctx.body = { ...body, access_token: idToken }
  }

  #keep(id: string, mounted: Mounted): void {
    for (const oldest of this.#made.keys()) {
      if (this.#made.size < mostProviders) break
      this.#made.delete(oldest)
    }
    this.#made.set(id, mounted)
  }

  #label(clientId: string): string {
    return this.#source.config.trusts.find((trust) => trust.clientId === clientId)?.label ?? clientId
  }

  async #cookieKeys(): Promise<string[]> {
    const keys = await this.#source.keys.secretKeys(`issuer cookies ${this.#source.config.name}`)
    return keys.map((key) => key.export().toString('base64url'))
  }
}

/**
 * The library returns `invalid_request` for a grant that an application may not use; RFC 6749 5.2 has a code for
 * that.
 */
function nameRefusedGrant(ctx: { status: number; body?: unknown }): void {
  if (ctx.status !== 400 || typeof ctx.body !== 'object' || ctx.body === null) return
  const { error, error_description: description } = ctx.body as { error?: unknown; error_description?: unknown }
  if (error !== 'invalid_request' || !String(description).endsWith('is not allowed for this client')) return
  ctx.body = { ...ctx.body, error: 'unauthorized_client' }
}

/** A token that was just replaced is not replaced again. */
function showSuccessor(ctx: { status: number; body?: unknown }): void {
  const successor = presentCall()?.replacedBy
  if (successor === undefined || ctx.status !== 200 || !isJsonObject(ctx.body)) return
  ctx.body = { ...ctx.body, refresh_token: successor }
}

/** The grant that we answer before the provider sees it. */
function announceExchange(ctx: { path: string; status: number; body?: unknown }): void {
  if (!ctx.path.startsWith('/.well-known/') || ctx.status !== 200 || !isJsonObject(ctx.body)) return
  const grants = ctx.body['grant_types_supported']
  if (Array.isArray(grants)) ctx.body = { ...ctx.body, grant_types_supported: [...grants, tokenExchangeGrant] }
}

/** The keys of a ring for the provider: the first signs; the others only verify. */
function providerKeys(signer: TokenKey, published: readonly PublicTokenKey[], Key: typeof ExternalSigningKey): JWKS {
  const { kid } = signer
  class RingKey extends Key {
    readonly #public: KeyObject

    constructor(jwk: PublicTokenKey) {
      super()
      this.#public = createPublicKey({ key: { ...jwk }, format: 'jwk' })
      Object.assign(this, { kid: jwk['kid'], alg: jwk['alg'] })
    }

    override keyObject(): KeyObject {
      return this.#public
    }

    override async sign(data: Uint8Array): Promise<Uint8Array> {
      if (this.kid !== kid) throw new Error('a key that no longer signs was asked to')
      return signer.sign(Buffer.from(data))
    }
  }
  const active = published.filter((jwk) => jwk['kid'] === kid)
  const others = published.filter((jwk) => jwk['kid'] !== kid)
  return { keys: [...active, ...others].map((jwk) => new RingKey(jwk)) }
}
