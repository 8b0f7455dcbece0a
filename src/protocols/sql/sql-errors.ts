import { type ErrorCode, GatewayError } from '#kernel/errors.ts'

/** SQLSTATEs (PostgreSQL, appendix A) that say that a transaction may succeed when it is run again. */
const worthAnotherTry = new Set([
  '40001', // serialization failure
  '40P01', // deadlock
])
/** Shut down, starting up, out of connections, idle in a transaction for too long. */
const connectionLost = new Set(['57P01', '57P02', '57P03', '53300', '53400', '25P03'])
/** The server is there and lets nobody in, which somebody else has to put right. */
const notLetIn = new Set(['28000', '28P01', '3D000'])
const networkCodes =
  /^(?:ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|ERR_SSL\w*|ERR_TLS\w*|CERT_\w+|DEPTH_ZERO\w+|SELF_SIGNED\w+|UNABLE_TO\w+)$/
const connectionTexts =
  /^(?:Connection terminated|timeout exceeded|timeout expired|Client has encountered|Client was closed|Query read timeout|The server does not support SSL)/

const field = (thrown: unknown, name: string): string => {
  const value: unknown = thrown instanceof Error ? Reflect.get(thrown, name) : undefined
  return typeof value === 'string' ? value : ''
}

const codeOf = (thrown: unknown): string =>
  thrown instanceof AggregateError ? codeOf(thrown.errors[0]) : field(thrown, 'code')

export const isRetryable = (thrown: unknown): boolean => worthAnotherTry.has(codeOf(thrown))

/** The connection is of no use any more, and whatever was under way on it is undone, or nobody knows. */
export function isConnectionLoss(thrown: unknown): boolean {
  const code = codeOf(thrown)
  if (code.startsWith('08') || connectionLost.has(code) || networkCodes.test(code)) return true
  return code === '' && thrown instanceof Error && connectionTexts.test(thrown.message)
}

interface Verdict {
  readonly code: ErrorCode
  readonly text: string
  readonly retryAfter?: number
}

/** What PostgreSQL or its driver threw, in Gatehouse's terms; what is not theirs goes through unchanged. */
export function postgresError(thrown: unknown): unknown {
  if (thrown instanceof GatewayError || !(thrown instanceof Error)) return thrown
  return toGatewayError(postgresVerdict(thrown), thrown)
}

function postgresVerdict(thrown: Error): Verdict {
  const code = codeOf(thrown)
  const { message } = thrown
  const column = field(thrown, 'column')
  if (isConnectionLoss(thrown)) return unreachable(`the database does not answer: ${message}`, 5)
  if (notLetIn.has(code)) return unreachable(`the database lets nobody in: ${message}`, 30)
  if (worthAnotherTry.has(code)) return unreachable(`the transaction kept failing: ${message}`, 1)
  if (code === '23505') return { code: 'CONFLICT', text: message }
  if (code === '23502') return { code: 'BAD_REQUEST', text: `column "${column}" must have a value` }
  // Data exceptions (a number out of range, a text too long), check constraints, an index row that is too large.
  if (code.startsWith('22') || code === '23514' || code === '54000') return { code: 'BAD_REQUEST', text: message }
  if (code === '57014' || code === '55P03') return { code: 'TARGET_TIMEOUT', text: message, retryAfter: 5 }
  if (code.startsWith('53') || code.startsWith('58') || code === '25006') return unreachable(message, 30)
  return { code: 'TARGET_FAILED', text: message }
}

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html). */
const environment = new Map([
  [7, 'is out of memory'],
  [8, 'cannot be written'],
  [10, 'had an input or output error'],
  [13, 'is full'],
  [14, 'cannot be opened'],
])
const constraintVerdicts = new Map<number, ErrorCode>([
  [1555, 'CONFLICT'], // primary key
  [2067, 'CONFLICT'], // unique
  [2579, 'CONFLICT'], // rowid
  [275, 'BAD_REQUEST'], // check
  [1299, 'BAD_REQUEST'], // not null
  [3091, 'BAD_REQUEST'], // data type, in strict tables
  [18, 'BAD_REQUEST'], // too big
])

const resultCode = (thrown: unknown): number | undefined => {
  const code: unknown = thrown instanceof Error ? Reflect.get(thrown, 'errcode') : undefined
  return typeof code === 'number' ? code : undefined
}

/** Another process is writing. */
export function isBusy(thrown: unknown): boolean {
  const code = (resultCode(thrown) ?? 0) & 0xff
  return code === 5 || code === 6
}

/** What SQLite threw, in Gatehouse's terms; what is not SQLite's goes through unchanged. */
export function sqliteError(thrown: unknown): unknown {
  const code = resultCode(thrown)
  if (code === undefined || !(thrown instanceof Error)) return thrown
  return toGatewayError(sqliteVerdict(code, thrown), thrown)
}

function sqliteVerdict(code: number, thrown: Error): Verdict {
  const constraint = constraintVerdicts.get(code)
  if (constraint !== undefined) return { code: constraint, text: thrown.message }
  if (isBusy(thrown)) return unreachable('the database is locked by another process', 1)
  const trouble = environment.get(code & 0xff)
  if (trouble !== undefined) return unreachable(`the database ${trouble}: ${thrown.message}`, 30)
  return { code: 'TARGET_FAILED', text: thrown.message }
}

const unreachable = (text: string, retryAfter: number): Verdict => ({ code: 'TARGET_UNREACHABLE', text, retryAfter })

const toGatewayError = ({ code, text, retryAfter }: Verdict, cause: Error): GatewayError =>
  new GatewayError(code, text, { cause, ...(retryAfter === undefined ? {} : { retryAfter }) })
