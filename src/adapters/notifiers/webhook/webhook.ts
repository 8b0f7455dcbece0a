import { isLoopback } from '#kernel/address.ts'
import { AnswerTooLong, type HttpPool, openHttpPool, wasNotSent } from '#protocols/http/http-client.ts'
import { authorityParameters, loadAuthority, readAuthority } from '#sdk/module/authority.ts'
import { choice, parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import {
  defineNotifier,
  type HandOver,
  type Notifier,
  type OutgoingMail,
  type SendOutcome,
} from '#sdk/notifier/notifier.ts'
import { type MessageFormat, messageBody, messageFormats } from './message-formats.ts'

const maxAnswerBytes = 64 * 1024

const parameters = {
  url: parsed('https address', readAddress, {
    about:
      'The address of the webhook: `https:`, or `http:` on a loopback host. Anyone who has it can post, so it belongs in `secretParams`.',
    required: true,
    secret: true,
  }),
  format: choice(messageFormats, {
    about:
      '`slack` posts blocks, for Slack; `teams` an adaptive card, for Microsoft Teams; `json` the message itself, for a receiver of your own.',
    fallback: 'json',
  }),
  timeoutSeconds: wholeNumber({ about: 'How long one attempt may take in all.', fallback: 10, min: 1, max: 60 }),
  ...authorityParameters,
}

/** Posts messages to a channel. The outbox retries an attempt that failed. */
export default defineNotifier({
  className: 'notifiers.Webhook',
  delivers: 'channel messages',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    return { ...given, authority: readAuthority(given, params, issues, context) }
  },
  create: async ({ url, format, timeoutSeconds, authority }) =>
    new WebhookNotifier({
      url: url ?? new URL('https://localhost'),
      format,
      millis: timeoutSeconds * 1000,
      pool: openHttpPool(await loadAuthority(authority), { maxSockets: 4, maxFreeSockets: 1 }),
    }),
})

function readAddress(written: string): URL {
  const url = URL.canParse(written) ? new URL(written) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url))
  // The address is a secret, so the message must not repeat it.
  if (url === undefined || !isSafe) throw new Error('must be an https address, or an http address on a loopback host')
  if (url.username !== '' || url.hash !== '') throw new Error('must not contain a login or a fragment')
  return url
}

interface WebhookParts {
  readonly url: URL
  readonly format: MessageFormat
  readonly millis: number
  readonly pool: HttpPool
}

class WebhookNotifier implements Notifier {
  readonly #parts: WebhookParts

  constructor(parts: WebhookParts) {
    this.#parts = parts
  }

  async send(mail: OutgoingMail, handOver: HandOver): Promise<SendOutcome> {
    const { url, format, millis, pool } = this.#parts
    const headers = { 'content-type': 'application/json', 'idempotency-key': mail.id }
    const call = { method: 'POST', url, headers, body: messageBody(format, mail) }
    try {
      await handOver()
    } catch (error) {
      return { kind: 'failed', reason: reasonOf(error) }
    }
    try {
      const { status } = await pool.send(call, { signal: AbortSignal.timeout(millis), bytes: maxAnswerBytes })
      return outcomeOf(status)
    } catch (error) {
      if (error instanceof AnswerTooLong) return outcomeOf(error.status)
      return { kind: wasNotSent(error) ? 'failed' : 'unknown', reason: reasonOf(error) }
    }
  }

  close(): void {
    this.#parts.pool.close()
  }
}

/** The receiver is busy, or a proxy answers for it. */
const temporary = new Set([408, 425, 429, 500, 503])
/** The receiver may have had the message: a proxy did not get its answer. */
const undecided = new Set([502, 504])

/** What an answer says about the message. Redirects are not followed, since only the configured address gets it. */
function outcomeOf(status: number): SendOutcome {
  if (status >= 200 && status < 300) return { kind: 'accepted' }
  const reason = `the webhook answered ${status}`
  if (undecided.has(status)) return { kind: 'unknown', reason }
  return { kind: temporary.has(status) ? 'failed' : 'refused', reason }
}

/** Errors of the connection name its host, but not the path, which is the secret part. */
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300)
