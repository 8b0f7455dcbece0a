import type { Configuration, CustomFetch, ServerMetadata } from 'openid-client'
import { isLoopback, parseTrustedUrl } from '#kernel/address.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { OpenIdConnectConfig } from './parameters.ts'

/** The library, loaded with the first mechanism that needs it. */
type OpenIdLibrary = typeof import('openid-client')

const seconds = 10
const answerBytes = 256 * 1024
/** How long a discovery document is used, and how soon a failed request is repeated. */
const freshMillis = 60 * 60_000
const retryMillis = 2_000

/** The issuer's metadata, read at the first login and refreshed from time to time. */
export class IssuerClient {
  readonly library: OpenIdLibrary
  readonly #config: OpenIdConnectConfig
  readonly #clock: Clock
  readonly #log: Logger
  readonly #pool: HttpPool
  readonly #loaded: (problem?: string) => void
  #known: { readonly configuration: Configuration; readonly at: number } | undefined
  #failedAt = Number.NEGATIVE_INFINITY
  #loading: Promise<Configuration> | undefined

  constructor(
    library: OpenIdLibrary,
    config: OpenIdConnectConfig,
    host: Pick<AuthHost, 'clock' | 'log' | 'watchIssuer'>,
  ) {
    const { clock, log } = host
    this.#loaded = host.watchIssuer?.(config.issuer) ?? (() => {})
    this.library = library
    this.#config = config
    this.#clock = clock
    this.#log = log
    this.#pool = openHttpPool()
  }

  /** Throws TARGET_UNREACHABLE. An outdated document stays in use while a new one is not available. */
  async configuration(): Promise<Configuration> {
    const now = this.#clock().getTime()
    if (this.#known !== undefined && now - this.#known.at < freshMillis) return this.#known.configuration
    if (this.#loading === undefined && now - this.#failedAt < retryMillis) {
      if (this.#known !== undefined) return this.#known.configuration
      throw unreachable(`the issuer ${this.#config.issuer} could not be reached a few seconds ago`)
    }
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    return await this.#loading
  }

  close(): void {
    this.#pool.close()
  }

  async #load(): Promise<Configuration> {
    try {
      const configuration = await this.#connect()
      const { authorization_endpoint: authorization } = configuration.serverMetadata()
      if (authorization === undefined) throw new Error('the issuer has no authorization endpoint')
      parseTrustedUrl(authorization)
      this.#known = { configuration, at: this.#clock().getTime() }
      this.#loaded()
      return configuration
    } catch (cause) {
      this.#failedAt = this.#clock().getTime()
      this.#loaded(cause instanceof Error ? cause.message : String(cause))
      this.#log.warn('an outside issuer cannot be used', { issuer: this.#config.issuer, err: cause })
      if (this.#known !== undefined) return this.#known.configuration
      throw unreachable(`the issuer ${this.#config.issuer} cannot be used`, cause)
    }
  }

  async #connect(): Promise<Configuration> {
    const { issuer, clientId, clientSecret, endpoints, userInfo } = this.#config
    const { customFetch, allowInsecureRequests, enableNonRepudiationChecks, discovery, None } = this.library
    const url = new URL(issuer)
    const authentication = clientSecret === undefined ? None() : undefined
    const local = url.protocol === 'http:' && isLoopback(url) ? [allowInsecureRequests] : []
    if (endpoints === undefined) {
      const configuration = await discovery(url, clientId, clientSecret, authentication, {
        [customFetch]: this.#fetch,
        timeout: seconds,
        execute: [...local, enableNonRepudiationChecks],
      })
      if (userInfo === undefined) return configuration
      const metadata: ServerMetadata = configuration.serverMetadata()
      return this.#configured(Object.assign({}, metadata, { userinfo_endpoint: userInfo.href }), local, true)
    }
    const metadata: ServerMetadata = {
      issuer,
      authorization_endpoint: endpoints.authorization.href,
      token_endpoint: endpoints.token.href,
      ...(endpoints.keys === undefined ? {} : { jwks_uri: endpoints.keys.href }),
      ...(userInfo === undefined ? {} : { userinfo_endpoint: userInfo.href }),
    }
    const isLocal = endpoints.token.protocol === 'http:' ? [allowInsecureRequests] : local
    return this.#configured(metadata, isLocal, endpoints.keys !== undefined)
  }

  #configured(
    metadata: ServerMetadata,
    execute: readonly ((configuration: Configuration) => void)[],
    verifies: boolean,
  ): Configuration {
    const { clientId, clientSecret } = this.#config
    const authentication = clientSecret === undefined ? this.library.None() : undefined
    const configuration = new this.library.Configuration(metadata, clientId, clientSecret, authentication)
    configuration[this.library.customFetch] = this.#fetch
    configuration.timeout = seconds
    for (const change of execute) change(configuration)
    if (verifies) this.library.enableNonRepudiationChecks(configuration)
    return configuration
  }

  /** Over TLS or on this machine, without redirects, and within limits. An issuer that fails counts as unreachable. */
  readonly #fetch: CustomFetch = async (address, { method, headers, body, signal }) => {
    const url = parseTrustedUrl(address)
    const text = body === undefined || body === null ? undefined : String(body)
    try {
      const answer = await this.#pool.send(
        { method, url, headers, body: text },
        { signal: signal ?? AbortSignal.timeout(seconds * 1000), bytes: answerBytes },
      )
      if (answer.status >= 500) throw new Error(`${url.origin} answered ${answer.status}`)
      const copied = Object.entries(answer.headers).flatMap(([name, value]): [string, string][] =>
        typeof value === 'string' ? [[name, value]] : [],
      )
      const isEmpty = answer.status === 204 || answer.status === 304
      return new Response(isEmpty ? null : answer.body, { status: answer.status, headers: copied })
    } catch (cause) {
      throw unreachable(`the issuer ${this.#config.issuer} does not answer`, cause)
    }
  }
}

const unreachable = (detail: string, cause?: unknown): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', detail, {
    retryAfter: Math.ceil(retryMillis / 1000),
    cause,
  })
