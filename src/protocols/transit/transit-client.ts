import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { readSmallFile } from '#kernel/small-file.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'

interface TransitPlace {
  /** `https://host:port`, or `http` on this machine. */
  readonly address: string
  readonly namespace?: string | undefined
  /** In PEM; the CAs of the runtime if absent. */
  readonly ca?: string | undefined
  readonly login: TransitLogin
}

/** A token, or a JWT in a file that is exchanged for one at `auth/<mount>/login`. */
export type TransitLogin =
  | { readonly type: 'token'; readonly token: string }
  | { readonly type: 'jwt'; readonly mount: string; readonly role: string; readonly jwtFile: string }

export interface TransitOptions {
  readonly clock: Clock
  readonly timeoutMillis?: number
  /** Called for every sent request, and for those that were not sent because the service is unavailable. */
  measure?(operation: string, outcome: 'done' | 'refused' | 'failed' | 'skipped', seconds: number): void
}

/** The service rejected the call. */
export class TransitRefusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'TransitRefusal'
    this.status = status
  }
}

interface Held {
  readonly token: string
  /** When to request another, in milliseconds since 1970. */
  readonly until: number
}

const usualTimeoutMillis = 3000
const mostBytes = 1 << 20
/** After this many consecutive failures, calls are not sent until a pause is over. Then one of them tries. */
const mostFailures = 2
const pauseMillis = 2000
const renewMillis = 600_000
const mostJwtCharacters = 64 * 1024

/**
 * The part of the HTTP API of OpenBao and Vault that Transit needs. An unavailable service costs a few callers the
 * timeout; the others get TARGET_UNREACHABLE at once, with the time of the next try.
 */
export class TransitClient {
  readonly #place: TransitPlace
  readonly #options: TransitOptions
  readonly #pool: HttpPool
  #held: Held | undefined
  #login: Promise<Held> | undefined
  #renewAt = 0
  #failures = 0
  #closedUntil = 0
  #probing = false

  constructor(place: TransitPlace, options: TransitOptions) {
    this.#place = place
    this.#options = options
    this.#pool = openHttpPool(place.ca, { maxSockets: 64, maxFreeSockets: 64 })
  }

  /**
   * The `data` of the response; undefined if there is none. `operation` names the call in metrics. Rejects with a
   * TransitRefusal for a 4xx response, and with TARGET_UNREACHABLE for every other failure.
   */
  async call(
    operation: string,
    method: 'GET' | 'POST',
    path: string,
    body?: JsonObject,
  ): Promise<JsonObject | undefined> {
    try {
      return dataOf(await this.#attempt(operation, method, path, body, await this.#token()))
    } catch (error) {
      if (!(error instanceof TransitRefusal) || error.status !== 403 || this.#place.login.type === 'token') throw error
      // The token may have been revoked, or have expired early.
      this.#held = undefined
      return dataOf(await this.#attempt(operation, method, path, body, await this.#token()))
    }
  }

  /** Renews a configured token, if it is renewable. Never rejects. */
  async renew(): Promise<void> {
    const now = this.#options.clock().getTime()
    if (this.#place.login.type !== 'token' || now < this.#renewAt) return
    this.#renewAt = now + renewMillis
    await this.call('renew', 'POST', 'auth/token/renew-self', {}).catch(() => {})
  }

  close(): void {
    this.#pool.close()
  }

  async #token(): Promise<string> {
    const { login } = this.#place
    if (login.type === 'token') return login.token
    const held = this.#held
    if (held !== undefined && this.#options.clock().getTime() < held.until) return held.token
    this.#login ??= this.#logIn(login).finally(() => {
      this.#login = undefined
    })
    return (await this.#login).token
  }

  async #logIn({ mount, role, jwtFile }: Extract<TransitLogin, { type: 'jwt' }>): Promise<Held> {
    let jwt: string
    try {
      jwt = (await readSmallFile(jwtFile)).trim().slice(0, mostJwtCharacters)
    } catch (cause) {
      throw new GatewayError('INTERNAL', `the login at Transit needs the file ${jwtFile}, which cannot be read`, {
        cause,
      })
    }
    const answer = await this.#attempt('login', 'POST', `auth/${mount}/login`, { role, jwt }, undefined)
    const auth = answer?.['auth']
    const token = isJsonObject(auth) ? auth['client_token'] : undefined
    if (!isJsonObject(auth) || typeof token !== 'string') throw new TransitRefusal(400, 'the login gave no token')
    const seconds = typeof auth['lease_duration'] === 'number' ? auth['lease_duration'] : 0
    this.#held = {
      token,
      until: this.#options.clock().getTime() + (seconds === 0 ? renewMillis : seconds * 1000 * (2 / 3)),
    }
    return this.#held
  }

  /** Sends it, unless the service was unavailable just before. */
  async #attempt(
    operation: string,
    method: 'GET' | 'POST',
    path: string,
    body: JsonObject | undefined,
    token: string | undefined,
  ): Promise<JsonObject | undefined> {
    const measure = (outcome: 'done' | 'refused' | 'failed' | 'skipped', since: number): void =>
      this.#options.measure?.(operation, outcome, (performance.now() - since) / 1000)
    const started = performance.now()
    const probes = this.#admit(() => measure('skipped', started))
    try {
      const answer = await this.#send(method, path, body, token)
      this.#failures = 0
      measure('done', started)
      return answer
    } catch (error) {
      if (error instanceof TransitRefusal) {
        this.#failures = 0
        measure('refused', started)
        throw error
      }
      measure('failed', started)
      this.#failures++
      if (this.#failures >= mostFailures) this.#closedUntil = this.#now() + pauseMillis
      throw away(this.#place.address, pauseMillis, error)
    } finally {
      if (probes) this.#probing = false
    }
  }

  /** Whether this call tests if the service is back. Throws while it is known to be unavailable. */
  #admit(skipped: () => void): boolean {
    if (this.#failures < mostFailures) return false
    const left = this.#closedUntil - this.#now()
    if (left > 0 || this.#probing) {
      skipped()
      throw away(this.#place.address, Math.max(left, 1000), undefined)
    }
    this.#probing = true
    return true
  }

  /** Since the start of the process, independent of the system clock. */
  #now(): number {
    return performance.now()
  }

  async #send(
    method: string,
    path: string,
    body: JsonObject | undefined,
    token: string | undefined,
  ): Promise<JsonObject | undefined> {
    const { address, namespace } = this.#place
    const headers = {
      'x-vault-request': 'true',
      ...(token === undefined ? {} : { 'x-vault-token': token }),
      ...(namespace === undefined ? {} : { 'x-vault-namespace': namespace }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const call = { method, url: new URL(`${address}/v1/${path}`), headers, retryClosed: true }
    const signal = AbortSignal.timeout(this.#options.timeoutMillis ?? usualTimeoutMillis)
    const answer = await this.#pool.send(body === undefined ? call : { ...call, body: JSON.stringify(body) }, {
      signal,
      bytes: mostBytes,
    })
    return readAnswer(answer.status, answer.body)
  }
}

function readAnswer(status: number, text: string): JsonObject | undefined {
  if (status === 204) return undefined
  const parsed = parse(text)
  if (status === 200) {
    if (parsed === undefined) throw new Error('the answer is not JSON')
    return parsed
  }
  const errors = Array.isArray(parsed?.['errors']) ? parsed['errors'].map(String).join('; ').slice(0, 300) : ''
  const reason = `status ${status}${errors === '' ? '' : `: ${errors}`}`
  // 412: the node is behind; 429 and above 471: it does not serve now. All of these are temporary.
  if (status >= 400 && status < 500 && ![412, 429, 472, 473].includes(status)) throw new TransitRefusal(status, reason)
  throw new Error(reason)
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const dataOf = (answer: JsonObject | undefined): JsonObject | undefined => {
  const data = answer?.['data']
  return isJsonObject(data) ? data : undefined
}

const away = (address: string, millis: number, cause: unknown): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `Transit at ${address} does not answer`, {
    cause,
    retryAfter: Math.max(1, Math.ceil(millis / 1000)),
    keyword: 'temporarily_unavailable',
    publicText: 'The service that keeps the signing keys does not answer. Try again.',
  })
