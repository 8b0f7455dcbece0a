import { GatewayError } from '#kernel/errors.ts'
import type { ApiAnswer } from '#protocols/kubernetes/api-connection.ts'

const retryAfter = 2
const longestReason = 500

/** The API server's `Status`, or what there is of one. */
interface Refusal {
  readonly reason: string
  readonly message: string
}

/** What a list or watch goes on from has been forgotten by the server. */
export class ExpiredList extends GatewayError {}

/** The account may not do this. */
export class AccessRefused extends GatewayError {}

/** The server has no such kind of objects. */
export class KindNotServed extends GatewayError {}

/** The error that an answer other than success stands for. */
export function apiFailure(who: string, what: string, answer: ApiAnswer): GatewayError {
  const { reason, message } = readStatus(answer.body)
  const detail = `${who}: ${what}: ${answer.status} ${reason} ${message}`.trim().slice(0, longestReason)
  switch (answer.status) {
    case 400:
    case 413:
    case 422:
      return new GatewayError('BAD_REQUEST', detail)
    case 409:
      return new GatewayError(reason === 'AlreadyExists' ? 'CONFLICT' : 'VERSION_MISMATCH', detail)
    case 403:
      return new AccessRefused('TARGET_FAILED', detail)
    case 404:
      return reason === 'NotFound'
        ? new GatewayError('TARGET_FAILED', detail)
        : new KindNotServed('TARGET_FAILED', detail)
    case 410:
      return new ExpiredList('TARGET_UNREACHABLE', detail, { retryAfter })
    case 408:
    case 429:
      return new GatewayError('TARGET_UNREACHABLE', detail, { retryAfter })
    default:
      if (/request is too large|message larger than max/.test(message)) return new GatewayError('BAD_REQUEST', detail)
      if (answer.status >= 500) return new GatewayError('TARGET_UNREACHABLE', detail, { retryAfter })
      return new GatewayError('TARGET_FAILED', detail)
  }
}

/** No answer, or none that can be read: the call may have been carried out. */
export const noAnswer = (who: string, what: string, cause: unknown): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `${who}: ${what}: no answer`, { cause, retryAfter })

/** An object that is not there. A kind that is not there is answered without such a reason. */
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
