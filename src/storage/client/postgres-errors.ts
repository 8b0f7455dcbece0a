import { GatewayError } from '#kernel/errors.ts'

/** SQLSTATEs (PostgreSQL, appendix A) that say that a transaction may succeed when it is run again. */
const worthAnotherTry = new Set([
  '40001', // serialization failure
  '40P01', // deadlock
  '23503', // the row that a new one refers to was deleted meanwhile
])
const connectionLost = new Set(['57P01', '57P02', '57P03', '53300', '53400', '25P03'])
const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
])
const connectionTexts =
  /^(Connection terminated|timeout exceeded|timeout expired|Client has encountered|Query read timeout)/

function codeOf(thrown: unknown): string {
  if (thrown instanceof AggregateError) return codeOf(thrown.errors[0])
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
}

export const isRetryable = (thrown: unknown): boolean => worthAnotherTry.has(codeOf(thrown))

/** The connection is of no use any more, and whatever was under way on it is undone, or nobody knows. */
export function isConnectionLoss(thrown: unknown): boolean {
  const code = codeOf(thrown)
  if (code.startsWith('08') || connectionLost.has(code) || networkCodes.has(code)) return true
  return code === '' && thrown instanceof Error && connectionTexts.test(thrown.message)
}

/** What PostgreSQL or its driver threw, in Gatehouse's terms; what is not theirs goes through unchanged. */
export function postgresError(thrown: unknown): unknown {
  if (thrown instanceof GatewayError || !(thrown instanceof Error)) return thrown
  const options = { cause: thrown }
  const code = codeOf(thrown)
  if (isConnectionLoss(thrown)) {
    return new GatewayError('TARGET_UNREACHABLE', `the database does not answer: ${thrown.message}`, {
      ...options,
      retryAfter: 5,
    })
  }
  if (worthAnotherTry.has(code)) {
    return new GatewayError('TARGET_UNREACHABLE', `the transaction kept failing: ${thrown.message}`, {
      ...options,
      retryAfter: 1,
    })
  }
  if (code === '23505') return new GatewayError('CONFLICT', thrown.message, options)
  // Data exceptions: a NUL character, a number out of range, an index row that is too large.
  if (code.startsWith('22') || code === '54000') return new GatewayError('BAD_REQUEST', thrown.message, options)
  if (code === '57014' || code === '55P03') return new GatewayError('TARGET_TIMEOUT', thrown.message, options)
  if (code.startsWith('53') || code === '25006') {
    return new GatewayError('TARGET_UNREACHABLE', thrown.message, { ...options, retryAfter: 30 })
  }
  return /^[0-9A-Z]{5}$/.test(code) ? new GatewayError('INTERNAL', thrown.message, options) : thrown
}
