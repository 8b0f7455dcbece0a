import { isLoopback, parseIssuerUrl, parseTrustedUrl } from '#kernel/address.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { exchange, type HttpAnswer } from '#protocols/http/http-client.ts'
import { chooseKey, isSameKey, type KeySet, readKeySet, type VerificationKey } from '#protocols/jwt/keys.ts'

export interface DiscoveryTimes {
  /** Keys older than this are loaded again, in the background. */
  readonly maxAge: number
  /** How much longer they are used while the issuer does not answer. */
  readonly grace: number
  /** The shortest time between two loads caused by an unknown key. */
  readonly cooldown: number
  /** The shortest time between two loads while there are no keys at all. */
  readonly retry: number
}

const minute = 60_000

export const discoveryTimes: DiscoveryTimes = {
  maxAge: 10 * minute,
  grace: 60 * minute,
  cooldown: minute / 2,
  retry: 2_000,
}

const limits: FetchLimits = { bytes: 256 * 1024, millis: 5_000 }

interface DiscoveryOptions {
  readonly issuer: string
  /** The owner of the keys in error messages; the issuer if absent. */
  readonly owner?: string | undefined
  /** The URL of the keys, for an issuer whose discovery document is not read. */
  readonly jwksUri?: string | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly times?: DiscoveryTimes | undefined
  readonly fetch?: FetchJson | undefined
  /** Called after each load, with the reason if it failed. */
  readonly loaded?: ((problem?: string) => void) | undefined
}

/**
 * An issuer's keys, found through its discovery document (OpenID Connect Discovery 4) when they are first needed.
 * Concurrent callers share one load. An unknown key causes another load, but not more often than the cooldown; if
 * the issuer is down, the old keys are used for a bounded time.
 */
export class DiscoveredKeySet implements KeySet {
  readonly #issuer: string
  readonly #owner: string
  readonly #jwksUri: string | undefined
  readonly #clock: Clock
  readonly #log: Logger
  readonly #times: DiscoveryTimes
  readonly #fetch: FetchJson
  readonly #loaded: (problem?: string) => void
  #keys: readonly VerificationKey[] = []
  #loadedAt = Number.NEGATIVE_INFINITY
  #triedAt = Number.NEGATIVE_INFINITY
  #failure: unknown
  #loading: Promise<boolean> | undefined

  constructor(options: DiscoveryOptions) {
    this.#issuer = options.issuer
    this.#owner = options.owner ?? options.issuer
    this.#jwksUri = options.jwksUri
    this.#clock = options.clock
    this.#log = options.log
    this.#times = options.times ?? discoveryTimes
    this.#fetch = options.fetch ?? fetchJson
    this.#loaded = options.loaded ?? (() => {})
  }

  fresh(): boolean {
    const now = this.#clock().getTime()
    const age = now - this.#loadedAt
    if (age < this.#times.maxAge) return true
    if (age >= this.#times.maxAge + this.#times.grace) return false
    if (now - this.#triedAt >= this.#times.cooldown) void this.#load()
    return true
  }

  async find(algorithm: string, kid: string | undefined): Promise<VerificationKey | undefined> {
    if (!this.fresh()) await this.#mustLoad()
    const known = chooseKey(this.#keys, algorithm, kid)
    if (known !== undefined) return known
    if (this.#loading === undefined && this.#sinceTried() < this.#times.cooldown) return undefined
    await this.#load()
    return chooseKey(this.#keys, algorithm, kid)
  }

  #sinceTried(): number {
    return this.#clock().getTime() - this.#triedAt
  }

  async #mustLoad(): Promise<void> {
    const waiting = this.#loading !== undefined || this.#sinceTried() >= this.#times.retry
    if (waiting && (await this.#load())) return
    const reason = this.#failure instanceof Error ? `: ${this.#failure.message}` : ''
    throw new GatewayError('TARGET_UNREACHABLE', `cannot fetch the keys of ${this.#owner}${reason}`, {
      cause: this.#failure,
      retryAfter: Math.ceil(this.#times.retry / 1000),
    })
  }

  /** True if the keys are new now. Never rejects. */
  #load(): Promise<boolean> {
    this.#loading ??= this.#fetchKeys().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #fetchKeys(): Promise<boolean> {
    this.#triedAt = this.#clock().getTime()
    try {
      this.#replace(readKeySet(await this.#fetch(await this.#keyAddress(), limits)))
      this.#loadedAt = this.#clock().getTime()
      this.#loaded()
      return true
    } catch (error) {
      this.#failure = error
      this.#loaded(error instanceof Error ? error.message : String(error))
      this.#log.warn('the keys of an issuer could not be loaded', { issuer: this.#owner, error })
      return false
    }
  }

  async #keyAddress(): Promise<URL> {
    if (this.#jwksUri !== undefined) return parseTrustedUrl(this.#jwksUri)
    const issuer = parseIssuerUrl(this.#issuer)
    const base = this.#issuer.endsWith('/') ? this.#issuer.slice(0, -1) : this.#issuer
    const document = await this.#fetch(new URL(`${base}/.well-known/openid-configuration`), limits)
    if (!isJsonObject(document)) throw new Error('the discovery document is not a JSON object')
    if (document['issuer'] !== this.#issuer) throw new Error('the discovery document names another issuer')
    const address = document['jwks_uri']
    if (typeof address !== 'string') throw new Error('the discovery document has no "jwks_uri"')
    const url = parseTrustedUrl(address)
    if (url.protocol === 'http:' && !isLoopback(issuer)) throw new Error('"jwks_uri" must start with https://')
    return url
  }

  /** An unchanged key keeps its identity, so that cached verifications stay valid. */
  #replace(loaded: readonly VerificationKey[]): void {
    const kept = loaded.map((key) => this.#keys.find((old) => isSameKey(old, key)) ?? key)
    for (const old of this.#keys) if (!kept.includes(old)) old.current = false
    this.#keys = kept
  }
}

export interface FetchLimits {
  /** The maximum number of bytes of a body. */
  readonly bytes: number
  /** Milliseconds until the last byte. */
  readonly millis: number
}

export type FetchJson = (url: URL, limits: FetchLimits) => Promise<unknown>

/**
 * One GET over a separate connection, without compression or redirects. Throws a plain Error unless the
 * response is 200 with a JSON body within the limits.
 */
export const fetchJson: FetchJson = async (url, limits) => (await fetchJsonAnswer(url, limits)).body

/** The same, but trusts only servers with a certificate of these CAs (PEM). */
export const fetchJsonTrusting =
  (authorities: string): FetchJson =>
  async (url, limits) =>
    (await fetchJsonAnswer(url, limits, authorities)).body

/** The same, with the headers of the response. */
export async function fetchJsonAnswer(
  url: URL,
  { bytes, millis }: FetchLimits,
  ca?: string,
): Promise<{ readonly body: unknown; readonly headers: HttpAnswer['headers'] }> {
  const call = { method: 'GET', url, headers: { accept: 'application/json' } }
  const { status, headers, body } = await exchange(call, { ca }, { signal: AbortSignal.timeout(millis), bytes })
  if (status !== 200) throw new Error(`${url.href} answered ${status}`)
  return { body: JSON.parse(body), headers }
}
