import { GatewayError } from '#kernel/errors.ts'

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html). */
const busy = 5
const locked = 6
const environment = new Map([
  [7, 'is out of memory'],
  [8, 'cannot be written'],
  [10, 'had an input or output error'],
  [13, 'is full'],
  [14, 'cannot be opened'],
])
const uniqueViolations = new Set([1555, 2067])
const tooBig = 18

function resultCode(thrown: unknown): number | undefined {
  return thrown instanceof Error && 'errcode' in thrown && typeof thrown.errcode === 'number'
    ? thrown.errcode
    : undefined
}

/** Another process is writing. */
export function isBusy(thrown: unknown): boolean {
  const code = (resultCode(thrown) ?? 0) & 0xff
  return code === busy || code === locked
}

/** What SQLite threw, in Gatehouse's terms; what is not SQLite's goes through unchanged. */
export function sqliteError(thrown: unknown): unknown {
  const code = resultCode(thrown)
  if (code === undefined || !(thrown instanceof Error)) return thrown
  const options = { cause: thrown }
  if (uniqueViolations.has(code)) return new GatewayError('CONFLICT', thrown.message, options)
  if (code === tooBig) return new GatewayError('BAD_REQUEST', thrown.message, options)
  if (isBusy(thrown)) {
    return new GatewayError('TARGET_UNREACHABLE', 'the database is locked by another process', {
      ...options,
      retryAfter: 1,
    })
  }
  const trouble = environment.get(code & 0xff)
  if (trouble === undefined) return new GatewayError('INTERNAL', thrown.message, options)
  return new GatewayError('TARGET_UNREACHABLE', `the database ${trouble}: ${thrown.message}`, {
    ...options,
    retryAfter: 30,
  })
}
