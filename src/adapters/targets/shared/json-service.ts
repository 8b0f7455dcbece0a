import type { Clock } from '#kernel/clock.ts'
import { GatewayError, type GatewayErrorOptions, unavailableText } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { AnswerTooLong, type HttpAnswer, type HttpPool } from '#protocols/http/http-client.ts'
import { readRetryAfter } from '#protocols/http/retry-after.ts'

interface JsonServiceOptions {
  readonly pool: HttpPool
  /** The target's name in errors. */
  readonly target: string
  readonly timeoutMillis: number
  readonly clock: Clock
}

interface JsonCall {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly token: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: JsonObject
  readonly signal?: AbortSignal | undefined
}

const maxAnswerBytes = 1024 * 1024
/** The call may succeed later: 409 also says that an earlier attempt is still being answered. */
const passing = new Set([408, 409, 425, 429])

/** Throws an Error for a bearer token that no header can have. */
export function readBearerToken(value: string): string {
  if (/^[\x21-\x7e]{1,16384}$/.test(value)) return value
  throw new Error('must be visible ASCII characters')
}

/** Calls an API with JSON and a bearer token, each call bounded in time and size and made once. */
export class JsonService {
  readonly #options: JsonServiceOptions

  constructor(options: JsonServiceOptions) {
    this.#options = options
  }

  /** A successful answer. Throws TARGET_UNREACHABLE if a retry may succeed, and TARGET_FAILED if the call was refused. */
  async call({ method, url, token, headers, body, signal: given }: JsonCall): Promise<HttpAnswer> {
    const { pool, timeoutMillis } = this.#options
    const deadline = AbortSignal.timeout(timeoutMillis)
    const signal = given === undefined ? deadline : AbortSignal.any([deadline, given])
    const call = {
      method,
      url,
      headers: {
        accept: 'application/json',
        'user-agent': 'gatehouse',
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    let answer: HttpAnswer
    try {
      answer = await pool.send(call, { signal, bytes: maxAnswerBytes })
    } catch (cause) {
      if (cause instanceof AnswerTooLong) throw this.#failure('TARGET_FAILED', url, `failed: ${cause.message}`, cause)
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw this.#failure('TARGET_UNREACHABLE', url, signal.aborted ? 'took too long' : `failed: ${reason}`, cause)
    }
    if (answer.status >= 200 && answer.status < 300) return answer
    throw this.#refusal(url, answer)
  }

  /** The body is left out: it may repeat what was sent. */
  #refusal(url: URL, { status, headers }: HttpAnswer): GatewayError {
    const id = String(headers['x-request-id'] ?? '')
    const request = /^[\w-]{1,100}$/.test(id) ? ` (request ${id} there)` : ''
    const text = `was answered with status ${status}${request}`
    if (passing.has(status) || (status >= 500 && status !== 501 && status !== 505)) {
      const wait = readRetryAfter(headers['retry-after'], this.#options.clock())
      return this.#failure('TARGET_UNREACHABLE', url, text, undefined, {
        publicText: unavailableText(status),
        retryAfter: wait === undefined ? undefined : Math.ceil(wait / 1000),
      })
    }
    if (status === 401 || status === 403) {
      return this.#failure('TARGET_FAILED', url, `${text}: it does not accept the credential, or the call`)
    }
    if (status >= 300 && status < 400) return this.#failure('TARGET_FAILED', url, `${text}: redirects are not followed`)
    return this.#failure('TARGET_FAILED', url, text)
  }

  /** Without the query, which has values of the request. */
  #failure(
    code: 'TARGET_FAILED' | 'TARGET_UNREACHABLE',
    { origin, pathname }: URL,
    text: string,
    cause?: unknown,
    options: GatewayErrorOptions = {},
  ): GatewayError {
    const call = `the call of target "${this.#options.target}" to ${origin}${pathname}`
    return new GatewayError(code, `${call} ${text}`, { cause, ...options })
  }
}
