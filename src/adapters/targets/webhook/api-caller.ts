import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import { type ErrorCode, GatewayError, type GatewayErrorOptions, unavailableText } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import {
  AnswerTooLong,
  type HttpCall,
  type HttpPool,
  openHttpPool,
  readBytes,
  wasNotSent,
} from '#protocols/http/http-client.ts'
import { readRetryAfter } from '#protocols/http/retry-after.ts'
import { loadAuthority } from '#sdk/module/authority.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import type { BodyValues, RequestTemplate, SingleValues } from './templates.ts'
import { type ConnectionConfig, kindOf, type Operation } from './webhook-config.ts'

/** A failed call. */
class CallFailure extends GatewayError {
  /** The server may have performed the request all the same. */
  readonly mayBeDone: boolean
  /** The same call may succeed a little later. */
  readonly mayPass: boolean

  constructor(
    code: ErrorCode,
    detail: string,
    { mayBeDone, mayPass, ...options }: GatewayErrorOptions & { mayBeDone: boolean; mayPass: boolean },
  ) {
    super(code, detail, options)
    this.mayBeDone = mayBeDone
    this.mayPass = mayPass
  }
}

const unreachable = new Set([408, 425, 429])
const badValues = new Set([400, 413, 414, 422])
/** The server sends these before it does anything. */
const surelyNotDone = new Set([408, 425, 429])

/** The failure for a status that is neither success nor "not found". The body is left out: it may repeat what was sent. */
function statusFailure(
  what: string,
  status: number,
  { writes, retryAfter }: { readonly writes: boolean; readonly retryAfter: number | undefined },
): CallFailure {
  const detail = `${what} was answered with status ${status}`
  const plain = { mayBeDone: false, mayPass: false }
  if (unreachable.has(status) || (status >= 500 && status !== 501 && status !== 505)) {
    return new CallFailure('TARGET_UNREACHABLE', detail, {
      mayBeDone: writes && !surelyNotDone.has(status),
      mayPass: true,
      publicText: unavailableText(status),
      retryAfter: retryAfter === undefined ? undefined : Math.ceil(retryAfter / 1000),
    })
  }
  if (status >= 300 && status < 400) {
    return new CallFailure('TARGET_FAILED', `${detail}: redirects are not followed`, plain)
  }
  if (status === 401 || status === 403) {
    return new CallFailure('TARGET_FAILED', `${detail}: our credentials are not accepted`, plain)
  }
  if (status === 409 && writes) return new CallFailure('CONFLICT', detail, { ...plain, keyword: 'uniqueness' })
  if (status === 412 && writes) return new CallFailure('VERSION_MISMATCH', detail, plain)
  if (badValues.has(status) && writes) {
    return new CallFailure('BAD_REQUEST', detail, {
      ...plain,
      publicText: 'The downstream system does not accept these values.',
      keyword: 'invalidValue',
    })
  }
  return new CallFailure('TARGET_FAILED', detail, plain)
}

/** The signature covers every part that decides what a request does, and its time. */
interface SignedRequest {
  /** Seconds since 1970, as sent. */
  readonly timestamp: string
  readonly method: string
  /** With its query, as sent. */
  readonly path: string
  readonly body: string
}

/** `v1=` and the HMAC-SHA256, in hexadecimal, of the four parts, each but the last followed by a line feed. */
function signature(secret: string, { timestamp, method, path, body }: SignedRequest): string {
  const digest = createHmac('sha256', secret).update(`${timestamp}\n${method}\n${path}\n${body}`).digest('hex')
  return `v1=${digest}`
}

/**
 * Makes a change. If its outcome is unknown, or the server reports a conflict, `isDone` checks whether the change was
 * made; if not, the failure is thrown. `certain`: the server rejected this change because of a conflict.
 */
export async function settle(
  change: () => Promise<unknown>,
  isDone: (certain: boolean) => Promise<boolean>,
): Promise<void> {
  try {
    await change()
  } catch (error) {
    if (!(error instanceof CallFailure) || !(error.mayBeDone || error.code === 'CONFLICT')) throw error
    const done = await isDone(!error.mayBeDone).catch(() => false)
    if (!done) throw error
  }
}

export interface Call {
  readonly operation: Operation
  /** Replaces the operation's own template. */
  readonly template?: RequestTemplate
  /** For the URL and headers. */
  readonly values: SingleValues
  /** For the body; `values` if absent. */
  readonly body?: BodyValues
  readonly request?: TargetRequest | undefined
}

/** A call without its signature. */
interface OutgoingCall extends HttpCall {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** A successful answer. */
interface ApiAnswer {
  /** Throws TARGET_FAILED if the answer is not JSON. */
  json(): JsonValue
}

const firstDelay = 100
const longestDelay = 2_000
const repeatable = new Set(['PUT', 'DELETE'])

/** Makes signed calls, each within one deadline, and retries if that is safe. */
export class ApiCaller {
  readonly #config: ConnectionConfig
  readonly #pool: HttpPool
  readonly #target: string
  readonly #clock: Clock

  static async open(config: ConnectionConfig, target: string, clock: Clock): Promise<ApiCaller> {
    const { authority, connections } = config
    const pool = openHttpPool(await loadAuthority(authority), { maxSockets: connections, maxFreeSockets: connections })
    return new ApiCaller(config, pool, target, clock)
  }

  constructor(config: ConnectionConfig, pool: HttpPool, target: string, clock: Clock) {
    this.#config = config
    this.#pool = pool
    this.#target = target
    this.#clock = clock
  }

  /** Undefined for "not found". Throws CallFailure, and BAD_REQUEST for a value that the request cannot contain. */
  async call(call: Call): Promise<ApiAnswer | undefined> {
    const { operation, request } = call
    const outgoing = this.#render(call)
    const deadline = AbortSignal.timeout(this.#config.timeoutMillis)
    const end = performance.now() + this.#config.timeoutMillis
    const signal = request?.signal === undefined ? deadline : AbortSignal.any([deadline, request.signal])
    const writes = isWrite(operation)
    const repeats =
      !writes || repeatable.has(outgoing.method) || (this.#config.idempotencyKeys && request !== undefined)
    let mayBeDone = false
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt(operation, outgoing, signal)
      } catch (error) {
        if (!(error instanceof CallFailure)) throw error
        mayBeDone ||= error.mayBeDone
        const wait = delay(attempt, error.retryAfter)
        const canWait = performance.now() + wait < end && !signal.aborted
        const again = error.mayPass && attempt < this.#config.retries && canWait && (repeats || !error.mayBeDone)
        if (!again) throw mayBeDone && !error.mayBeDone ? uncertain(error) : error
        await sleep(wait, undefined, { signal }).catch((cause) => {
          throw new CallFailure('TARGET_UNREACHABLE', `${this.#what(operation)} took too long`, {
            mayBeDone,
            mayPass: true,
            cause,
          })
        })
      }
    }
  }

  close(): void {
    this.#pool.close()
  }

  #what = ({ name }: Operation): string => `${name} of target "${this.#target}"`

  #render({ operation, template = operation.request, values, body, request }: Call): OutgoingCall {
    const { url, headers } = this.#config
    const path = url.pathname.replace(/\/$/, '') + template.render(values)
    const own = operation.headers.flatMap((header) => {
      const value = header.render(values)
      return value === undefined ? [] : [[header.name, value] as const]
    })
    const json = operation.body?.render(body ?? { values: (name) => listOf(values(name)) })
    const text = json === undefined ? undefined : JSON.stringify(json)
    const { method } = template
    const hasKey = request !== undefined && isWrite(operation)
    const key = hasKey ? idempotencyKey(request, method, path, text) : undefined
    return {
      method,
      url,
      path,
      body: text,
      headers: {
        Accept: 'application/json',
        'User-Agent': 'gatehouse',
        ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(key === undefined ? {} : { 'Idempotency-Key': key }),
        ...Object.fromEntries([...headers, ...own]),
      },
    }
  }

  async #attempt(operation: Operation, outgoing: OutgoingCall, signal: AbortSignal): Promise<ApiAnswer | undefined> {
    const what = this.#what(operation)
    const writes = isWrite(operation)
    let response: IncomingMessage
    let bytes: Buffer
    try {
      response = await this.#pool.open({ ...outgoing, headers: this.#signed(outgoing) }, signal)
      bytes = await readBytes(response, this.#config.maxAnswerBytes)
    } catch (cause) {
      throw this.#broken(what, writes, cause, signal)
    }
    const { statusCode: status = 0, headers } = response
    if (operation.notFound.has(status)) return undefined
    const isSuccess = operation.statuses?.has(status) ?? (status >= 200 && status < 300)
    if (!isSuccess) {
      const retryAfter = readRetryAfter(headers['retry-after'], this.#clock())
      throw statusFailure(what, status, { writes, retryAfter })
    }
    const refuse = (detail: string, cause?: unknown): CallFailure =>
      new CallFailure('TARGET_FAILED', `${what} was answered ${detail}`, { mayBeDone: writes, mayPass: false, cause })
    const encoding = headers['content-encoding'] ?? 'identity'
    if (encoding !== 'identity') throw refuse('in an encoding that was not requested')
    // A web page comes from a proxy or a login page, not from the API.
    if (/^text\/html\b/i.test(headers['content-type'] ?? '')) throw refuse('with a web page')
    return {
      json: () => {
        try {
          return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as JsonValue
        } catch (cause) {
          throw refuse('with something that is not JSON', cause)
        }
      },
    }
  }

  #broken(what: string, writes: boolean, cause: unknown, signal: AbortSignal): CallFailure {
    const mayBeDone = writes && !wasNotSent(cause)
    if (cause instanceof AnswerTooLong) {
      return new CallFailure('TARGET_FAILED', `${what} failed: ${cause.message}`, {
        mayBeDone,
        mayPass: false,
        cause,
      })
    }
    const reason = signal.aborted
      ? 'took too long'
      : `failed: ${cause instanceof Error ? cause.message : String(cause)}`
    return new CallFailure('TARGET_UNREACHABLE', `${what} ${reason}`, { mayBeDone, mayPass: !signal.aborted, cause })
  }

  #signed({ method, path, headers, body = '' }: OutgoingCall): Readonly<Record<string, string>> {
    const { signing } = this.#config
    if (signing === undefined) return headers
    const timestamp = String(Math.floor(this.#clock().getTime() / 1000))
    return {
      ...headers,
      [signing.timestampHeader]: timestamp,
      [signing.signatureHeader]: signature(signing.secret, { timestamp, method, path, body }),
    }
  }
}

const isWrite = ({ name }: Operation): boolean => kindOf(name).answer === undefined

const listOf = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value])

/** The same for every attempt of a step to make this request; a step may make several requests. */
function idempotencyKey({ idempotencyKey: step }: TargetRequest, method: string, path: string, body = ''): string {
  return createHash('sha256')
    .update(JSON.stringify([step, method, path, body]))
    .digest('base64url')
}

/** Exponential with jitter, or the server's Retry-After if longer. */
function delay(attempt: number, retryAfterSeconds: number | undefined): number {
  const backoff = Math.min(longestDelay, firstDelay * 2 ** attempt) * (0.5 + Math.random() / 2)
  return Math.max(backoff, (retryAfterSeconds ?? 0) * 1000)
}

/** An earlier attempt may have been performed. */
const uncertain = (error: CallFailure): CallFailure =>
  new CallFailure(error.code, error.message, {
    mayBeDone: true,
    mayPass: error.mayPass,
    cause: error,
    publicText: error.ownText,
    attribute: error.attribute,
    keyword: error.keyword,
    retryAfter: error.retryAfter,
  })
