import type { IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isJsonObject } from '#kernel/json.ts'
import { Agent as HttpAgent, request as httpRequest } from '#kernel/node-http.ts'
import { eventTokenType } from '#protocols/secevent/event-token.ts'

export type PushOutcome =
  | { readonly kind: 'accepted' }
  /** The receiver will never take this token. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Another attempt may succeed. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMillis?: number }

const maxAnswerBytes = 4096
const maxReason = 200
const tooLarge = 413

/**
 * Errors of RFC 8935 2.4 that are about who we are and not about this token; they stay until someone mends the set-up
 * of one side, so nothing is lost meanwhile.
 */
const setUpErrors = new Set([
  'invalid_key',
  'invalid_issuer',
  'invalid_audience',
  'authentication_failed',
  'access_denied',
])

/** Pushes Security Event Tokens to one receiver (RFC 8935), over a connection that is kept. Never follows a redirect. */
export class EventPusher {
  readonly #url: URL
  readonly #headers: Readonly<Record<string, string>>
  readonly #agent: HttpAgent | HttpsAgent

  constructor(url: URL, bearer: string | undefined) {
    this.#url = url
    this.#headers = {
      'content-type': eventTokenType,
      accept: 'application/json',
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    }
    const options = { keepAlive: true, maxSockets: 1 }
    this.#agent = url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
  }

  /** Never throws: whatever goes wrong is a failure. `now` is what a date in Retry-After is compared with. */
  async push(token: string, signal: AbortSignal, now: Date): Promise<PushOutcome> {
    try {
      const response = await this.#post(token, signal)
      return outcome(response, await readAnswer(response), now)
    } catch (error) {
      return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #post(token: string, signal: AbortSignal): Promise<IncomingMessage> {
    const send = this.#url.protocol === 'https:' ? httpsRequest : httpRequest
    return new Promise((resolve, reject) => {
      const headers = { ...this.#headers, 'content-length': String(Buffer.byteLength(token)) }
      send(this.#url, { method: 'POST', agent: this.#agent, signal, headers }, resolve).on('error', reject).end(token)
    })
  }
}

/** The whole body where it is short; of a long one its beginning, and the connection ends. */
async function readAnswer(response: IncomingMessage): Promise<string> {
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response as AsyncIterable<string>) {
    text += chunk
    if (text.length > maxAnswerBytes) break
  }
  return text
}

function outcome({ statusCode = 0, headers }: IncomingMessage, body: string, now: Date): PushOutcome {
  if (statusCode >= 200 && statusCode < 300) return { kind: 'accepted' }
  const told = statusCode === 400 ? toldError(body) : undefined
  const reason = `${statusCode}${told === undefined ? '' : ` ${told.err}: ${told.description}`}`.slice(0, maxReason)
  const unusable = told === undefined ? statusCode === tooLarge : !setUpErrors.has(told.err)
  if (unusable) return { kind: 'refused', reason }
  const retryAfterMillis = readRetryAfter(headers['retry-after'], now)
  return { kind: 'failed', reason, ...(retryAfterMillis === undefined ? {} : { retryAfterMillis }) }
}

/** A 400 without an error of RFC 8935 comes from something that is no receiver, and says nothing about the token. */
function toldError(body: string): { readonly err: string; readonly description: string } | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return undefined
  }
  if (!isJsonObject(parsed) || typeof parsed['err'] !== 'string') return undefined
  const { err, description } = parsed
  return { err: String(err), description: typeof description === 'string' ? description : '' }
}

/** Seconds or an HTTP date; undefined for anything else. */
export function readRetryAfter(value: string | undefined, now: Date): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const time = Date.parse(value)
  return Number.isNaN(time) ? undefined : Math.max(0, time - now.getTime())
}
