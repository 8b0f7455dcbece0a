import { GatewayError, unavailableText } from '#kernel/errors.ts'
import type { ApiAnswer } from '#protocols/kubernetes/api-connection.ts'

const retryAfter = 2
const longestReason = 500

/** The API server's `Status`, as far as it is readable. */
interface Refusal {
  readonly reason: string
  readonly message: string
}

/** The server no longer has the revision from which a list or watch continues. */
export class ExpiredList extends GatewayError {}

/** The account may not do this. */
export class AccessRefused extends GatewayError {}

/** The server has no such kind of objects. */
export class KindNotServed extends GatewayError {}

/** The server has no object of this name. */
export class ObjectMissing extends GatewayError {}

/** A webhook of the cluster can't take part in a dry run. */
export class DryRunRefused extends GatewayError {}

/** The error for a response other than success. */
export function apiFailure(who: string, what: string, answer: ApiAnswer): GatewayError {
  const { reason, message } = readStatus(answer.body)
  const detail = `${who}: ${what}: ${answer.status} ${reason} ${message}`.trim().slice(0, longestReason)
  switch (answer.status) {
    case 400:
      // The API server has no reason of its own for this, only its message.
      if (/does not support dry run/.test(message)) return new DryRunRefused('BAD_REQUEST', detail)
      return new GatewayError('BAD_REQUEST', detail)
    case 413:
    case 422:
      return new GatewayError('BAD_REQUEST', detail)
    case 409:
      return new GatewayError(reason === 'AlreadyExists' ? 'CONFLICT' : 'VERSION_MISMATCH', detail)
    case 401:
      return new GatewayError('TARGET_FAILED', `${detail}. The credentials are wrong or have expired`)
    case 403:
      return new AccessRefused('TARGET_FAILED', detail)
    case 404:
      return reason === 'NotFound'
        ? new ObjectMissing('TARGET_FAILED', detail)
        : new KindNotServed('TARGET_FAILED', detail)
    case 410:
      return new ExpiredList('TARGET_UNREACHABLE', detail, { retryAfter })
    case 408:
    case 429:
      return new GatewayError('TARGET_UNREACHABLE', detail, { retryAfter, publicText: unavailableText(answer.status) })
    default:
      if (/request is too large|message larger than max/.test(message)) return new GatewayError('BAD_REQUEST', detail)
      if (answer.status >= 500)
        return new GatewayError('TARGET_UNREACHABLE', detail, {
          retryAfter,
          publicText: unavailableText(answer.status),
        })
      return new GatewayError('TARGET_FAILED', detail)
  }
}

/** No response, or an unreadable one: the call may have been executed. */
export const noAnswer = (who: string, what: string, cause: unknown): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `${who}: ${what}: no answer`, { cause, retryAfter })

/** The object does not exist. For an unknown kind the response has no such reason. */
export const isMissing = ({ status, body }: ApiAnswer): boolean =>
  status === 404 && readStatus(body).reason === 'NotFound'

function readStatus(body: string): Refusal {
  try {
    const { reason, message } = JSON.parse(body) as { reason?: unknown; message?: unknown }
    return { reason: textOf(reason), message: textOf(message) }
  } catch {
    return { reason: '', message: '' }
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
