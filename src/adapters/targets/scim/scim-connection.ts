import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import { type ErrorCode, GatewayError, type GatewayErrorOptions, unavailableText } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { AnswerTooLong, type HttpAnswer, type HttpSend } from '#protocols/http/http-client.ts'
import { requestedPause } from '#protocols/http/retry-after.ts'
import { scimMediaType } from '#protocols/scim/schema/scim-error.ts'
import { PauseTooLong, RateBudget } from './rate-budget.ts'

export interface ScimRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the service's address, with its slash; its parts are encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: JsonObject
  /** The version that the resource must have. */
  readonly ifMatch?: string | undefined
  /** The body must not appear in errors. */
  readonly secret?: boolean
  readonly signal?: AbortSignal | undefined
}

interface ScimAnswer {
  readonly status: number
  /** Undefined if the response has no body. */
  readonly body: JsonObject | undefined
  readonly etag: string | undefined
}

/** The value of the Authorization header. */
export interface Credentials {
  header(signal: AbortSignal): Promise<string>
  /** The last header was rejected. Returns false if there is no other. */
  renew(): boolean
}

interface ConnectionOptions {
  readonly base: URL
  /** The target's name in errors. */
  readonly name: string
  readonly credentials: Credentials
  /** How long a call may take, including all retries. */
  readonly timeoutMillis: number
  readonly clock: Clock
}

const maxBytes = 32 * 1024 * 1024
const maxAttempts = 8
/** Retries of reads, after a lost response. */
const maxReads = 3
const firstPause = 200

/**
 * Calls one SCIM service. While the service limits calls, all of them wait, and are sent again where it refused them.
 * Reads are also retried after a lost response. Throws TARGET_UNREACHABLE if the outcome is unknown or a later call may
 * succeed, TARGET_FAILED if an operator has to fix something, and otherwise the error by RFC 7644 3.12.
 */
export class ScimConnection {
  readonly #send: HttpSend
  readonly #options: ConnectionOptions
  readonly #budget = new RateBudget()

  constructor(send: HttpSend, options: ConnectionOptions) {
    this.#send = send
    this.#options = options
  }

  async call(request: ScimRequest): Promise<ScimAnswer> {
    const { timeoutMillis, credentials } = this.#options
    const timeout = AbortSignal.timeout(timeoutMillis)
    const signal = request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal])
    const deadline = performance.now() + timeoutMillis
    for (let attempt = 1, renewed = false; ; attempt++) {
      let answer: HttpAnswer
      try {
        answer = await this.#budget.run({ deadline, signal }, async () => {
          const received = await this.#exchange(request, signal)
          this.#note(received, attempt)
          return received
        })
      } catch (error) {
        const pause = firstPause * attempt
        const again = isRead(request) && attempt < maxReads && isTransient(error, signal)
        if (!again || performance.now() + pause > deadline) throw this.#failure(request, error)
        await this.#pause(request, pause, signal)
        continue
      }
      if (answer.status === 401 && !renewed && credentials.renew()) {
        renewed = true
        continue
      }
      const isLate = attempt >= maxAttempts || performance.now() + this.#budget.rest > deadline
      if (isLate || !this.#isRefusedForNow(request, answer)) return this.#read(request, answer)
    }
  }

  /** The address of a resource, as members of the service refer to it. */
  address(path: string): string {
    return this.#url({ method: 'GET', path }).href
  }

  async #exchange(request: ScimRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const { method, body, ifMatch } = request
    const headers = {
      accept: `${scimMediaType}, application/json;q=0.9`,
      'user-agent': 'gatehouse',
      authorization: await this.#options.credentials.header(signal),
      ...(body === undefined ? {} : { 'content-type': scimMediaType }),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    }
    const call = { method, url: this.#url(request), headers }
    return this.#send(body === undefined ? call : { ...call, body: JSON.stringify(body) }, { signal, bytes: maxBytes })
  }

  #url({ path, query }: ScimRequest): URL {
    const url = new URL(this.#options.base)
    url.pathname = url.pathname.replace(/\/+$/, '') + path
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.append(name, value)
    return url
  }

  /** Keeps what the answer says about further calls. */
  #note(answer: HttpAnswer, attempt: number): void {
    const pause = this.#requestedPause(answer)
    if (pause !== undefined) this.#budget.pause(pause)
    else if (answer.status === 429) this.#budget.pause(firstPause * 2 ** attempt)
    else if (answer.status < 500) this.#budget.passed()
  }

  #requestedPause({ status, headers }: HttpAnswer): number | undefined {
    const isMeant = status < 300 || status === 403 || status === 429 || status >= 500
    return isMeant ? requestedPause(headers, this.#options.clock()) : undefined
  }

  /** The same call may be sent again: the service did not make the change. After a 503, that is unknown. */
  #isRefusedForNow(request: ScimRequest, answer: HttpAnswer): boolean {
    const { status } = answer
    if (status === 429) return true
    const pause = this.#requestedPause(answer)
    return pause !== undefined && (status === 403 || (status === 503 && isRepeatable(request)))
  }

  async #pause(request: ScimRequest, millis: number, signal: AbortSignal): Promise<void> {
    try {
      await sleep(millis, undefined, { signal })
    } catch (error) {
      throw this.#failure(request, error)
    }
  }

  #read(request: ScimRequest, answer: HttpAnswer): ScimAnswer {
    const { status, headers } = answer
    const call = this.#words(request)
    if (status < 200 || status > 299) {
      const pause = this.#requestedPause(answer)
      throw answerError({
        call,
        status: status === 403 && pause !== undefined ? 429 : status,
        body: parsed(answer.body),
        retryAfter: pause === undefined ? undefined : pause / 1000,
        secret: request.secret === true,
      })
    }
    const { etag } = headers
    if (answer.body.trim() === '') return { status, body: undefined, etag }
    const body = parsed(answer.body)
    if (!isJsonObject(body))
      throw new GatewayError('TARGET_FAILED', `${call} answered something other than a JSON object`)
    return { status, body, etag }
  }

  #failure(request: ScimRequest, error: unknown): GatewayError {
    if (error instanceof GatewayError) return error
    const call = this.#words(request)
    if (error instanceof AnswerTooLong) {
      return new GatewayError('TARGET_FAILED', `${call}: ${error.message}`, { cause: error })
    }
    if (error instanceof PauseTooLong) {
      return new GatewayError('TARGET_UNREACHABLE', `${call} was not sent: ${error.message}`, {
        cause: error,
        publicText: unavailableText(429),
        retryAfter: Math.ceil(error.millis / 1000),
      })
    }
    return new GatewayError('TARGET_UNREACHABLE', `${call} was not answered`, { cause: error })
  }

  #words({ method, path }: ScimRequest): string {
    return `target "${this.#options.name}": ${method} ${path.slice(0, 100)}`
  }
}

const isTransient = (error: unknown, signal: AbortSignal): boolean =>
  !signal.aborted && ![AnswerTooLong, GatewayError, PauseTooLong].some((kind) => error instanceof kind)

const isRead = ({ method, path }: ScimRequest): boolean => method === 'GET' || path.endsWith('/.search')

/** A second call changes nothing more than the first. A POST creates, and its caller looks whether it did. */
const isRepeatable = (request: ScimRequest): boolean => request.method !== 'POST' || isRead(request)

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface Refusal {
  /** The call for the log: target, method and path. */
  readonly call: string
  readonly status: number
  readonly body: JsonValue | undefined
  /** Seconds. */
  readonly retryAfter?: number | undefined
  /** The server's text is left out, since it may repeat a secret from the request. */
  readonly secret?: boolean
}

const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'BAD_REQUEST',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  412: 'VERSION_MISMATCH',
  413: 'BAD_REQUEST',
  422: 'BAD_REQUEST',
  429: 'TARGET_UNREACHABLE',
  501: 'NOT_SUPPORTED',
}

/** Codes whose reason is about the client's request, so that the client may see it. */
const publicCodes: ReadonlySet<ErrorCode> = new Set(['BAD_REQUEST', 'CONFLICT'])

const maxDetail = 300

/** The error for a status (RFC 7644 3.12). The server's text is cut to one line. */
export function answerError({ call, status, body, retryAfter, secret = false }: Refusal): GatewayError {
  const message = isJsonObject(body) ? body : {}
  const detail = secret ? '' : line(message['detail'])
  const keyword = line(message['scimType'])
  const isTaken = status === 400 && keyword === 'uniqueness'
  const code = isTaken ? 'CONFLICT' : (codes[status] ?? (status >= 500 ? 'TARGET_UNREACHABLE' : 'TARGET_FAILED'))
  const options: GatewayErrorOptions = {
    retryAfter: retryAfter === undefined ? undefined : Math.ceil(retryAfter),
    ...(publicCodes.has(code) && detail !== '' ? { publicText: detail } : {}),
    ...(code === 'TARGET_UNREACHABLE' ? { publicText: unavailableText(status) } : {}),
    ...(code === 'CONFLICT' ? { keyword: 'uniqueness' } : knownKeyword(code, keyword)),
  }
  return new GatewayError(code, `${call} answered ${status}${detail === '' ? '' : `: ${detail}`}`, options)
}

const keywords: ReadonlySet<string> = new Set([
  ...['invalidFilter', 'tooMany', 'mutability', 'invalidSyntax', 'invalidPath', 'noTarget', 'invalidValue'],
  ...['invalidCursor', 'expiredCursor', 'invalidCount'],
])

const knownKeyword = (code: ErrorCode, keyword: string): { keyword?: string } =>
  code === 'BAD_REQUEST' && keywords.has(keyword) ? { keyword } : {}

const line = (value: JsonValue | undefined): string =>
  typeof value === 'string'
    ? value
        .slice(0, maxDetail)
        .toWellFormed()
        .replace(/[\p{Cc}\s]+/gu, ' ')
        .trim()
    : ''
