import type { KeyObject } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { AnswerTooLong, type HttpAnswer, type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import { readRetryAfter } from '#protocols/http/retry-after.ts'
import { publishedKey } from '#protocols/jwt/signing.ts'

export type PushOutcome =
  | { readonly kind: 'accepted' }
  /** The receiver will never accept this token. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Another attempt may succeed. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMillis?: number | undefined }

const maxAnswerBytes = 4096
const maxReason = 200
const tooLarge = 413

/**
 * Errors of RFC 8935 2.4 that are about our identity and not about this token; they last until someone fixes the
 * configuration of one side, so nothing is lost meanwhile.
 */
const setUpErrors = new Set([
  'invalid_key',
  'invalid_issuer',
  'invalid_audience',
  'authentication_failed',
  'access_denied',
])

/** Pushes Security Event Tokens to one receiver (RFC 8935), over a kept connection. Never follows a redirect. */
export class EventPusher {
  readonly #url: URL
  readonly #headers: Readonly<Record<string, string>>
  readonly #pool: HttpPool = openHttpPool(undefined, { maxSockets: 1 })

  constructor(url: URL, bearer: string | undefined) {
    this.#url = url
    this.#headers = {
      'content-type': eventTokenType,
      accept: 'application/json',
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    }
  }

  /** Never throws: every error is a failure. A date in Retry-After is compared with `now`. */
  async push(token: string, signal: AbortSignal, now: Date): Promise<PushOutcome> {
    try {
      const call = { method: 'POST', url: this.#url, headers: this.#headers, body: token }
      return outcome(await this.#pool.send(call, { signal, bytes: maxAnswerBytes }), now)
    } catch (error) {
      // Only the status counts, not the receiver's text.
      if (error instanceof AnswerTooLong)
        return outcome({ status: error.status, headers: error.headers, body: '' }, now)
      return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  close(): void {
    this.#pool.close()
  }
}

function outcome({ status, headers, body }: HttpAnswer, now: Date): PushOutcome {
  if (status >= 200 && status < 300) return { kind: 'accepted' }
  const error = status === 400 ? readError(body) : undefined
  const reason = `${status}${error === undefined ? '' : ` ${error.err}: ${error.description}`}`.slice(0, maxReason)
  const unusable = error === undefined ? status === tooLarge : !setUpErrors.has(error.err)
  if (unusable) return { kind: 'refused', reason }
  const retryAfterMillis = readRetryAfter(headers['retry-after'], now)
  return { kind: 'failed', reason, retryAfterMillis }
}

/** A 400 without an error of RFC 8935 does not come from a receiver, and says nothing about the token. */
function readError(body: string): { readonly err: string; readonly description: string } | undefined {
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

const eventTokenType = 'application/secevent+jwt'

interface EventClaims {
  readonly issuer: string
  readonly audience: string
  readonly id: string
  readonly issued: Date
  readonly transaction: string
  /** `sub_id` of RFC 9493. */
  readonly subject: JsonObject
  readonly events: JsonObject
}

/** The claims of a Security Event Token (RFC 8417 2.2). It has no `sub` and no `exp`: an event does not expire. */
export const eventClaims = (event: EventClaims): JsonObject => ({
  iss: event.issuer,
  aud: event.audience,
  iat: Math.floor(event.issued.getTime() / 1000),
  jti: event.id,
  txn: event.transaction,
  sub_id: event.subject,
  events: event.events,
})

/** Signed with RS256. The same claims and key give the same token. */
export async function signEventToken(
  claims: JsonObject,
  keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
): Promise<string> {
  const { kid } = await publishedKey(keys.publicKey)
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: 'RS256', typ: 'secevent+jwt', ...(kid === undefined ? {} : { kid }) })
    .sign(keys.privateKey)
}
