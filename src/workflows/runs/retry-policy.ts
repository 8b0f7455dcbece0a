import { asGatewayError, type ErrorCode, GatewayError } from '#kernel/errors.ts'

export interface RetryLimits {
  /** Attempts of one step, including the first. */
  readonly attempts: number
  /** Attempts of a step that failed with an unknown error, such as a mistake in a plug-in. */
  readonly unknownAttempts: number
  readonly firstMillis: number
  readonly mostMillis: number
}

export const defaultRetries: RetryLimits = {
  attempts: 8,
  unknownAttempts: 3,
  firstMillis: 1_000,
  mostMillis: 5 * 60_000,
}

/** Errors that may not happen again. An administrator has to look at all others. */
const passing: ReadonlySet<ErrorCode> = new Set([
  'TARGET_UNREACHABLE',
  'TARGET_TIMEOUT',
  'TOO_MANY_REQUESTS',
  'REQUEST_TIMEOUT',
  'VERSION_MISMATCH',
  'SHUTTING_DOWN',
  'INTERNAL',
])

/** Whether another attempt may succeed: after such an error, and if the worker died. */
export const isPassing = (code: string | undefined): boolean =>
  code === 'WORKER_LOST' || (passing as ReadonlySet<string | undefined>).has(code)

const longestRetryAfterMillis = 60 * 60_000

/**
 * How long to wait before retrying a step that failed in its `attempt`-th attempt; undefined if it is not retried.
 * The wait doubles with each attempt and is spread by `random`, so that many runs do not return at once; it is
 * never shorter than the target requested.
 */
export function retryDelay(
  error: unknown,
  attempt: number,
  limits: RetryLimits = defaultRetries,
  random: () => number = Math.random,
): number | undefined {
  const known = error instanceof GatewayError
  if (attempt >= (known ? limits.attempts : Math.min(limits.attempts, limits.unknownAttempts))) return undefined
  const { code, retryAfter } = asGatewayError(error)
  if (!passing.has(code)) return undefined
  const grown = Math.min(limits.mostMillis, limits.firstMillis * 2 ** Math.min(attempt - 1, 30))
  const asked = Math.min((retryAfter ?? 0) * 1_000, longestRetryAfterMillis)
  return Math.round(Math.max(grown * (0.5 + random() / 2), asked))
}
