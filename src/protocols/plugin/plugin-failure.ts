import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { ThrownError } from '#protocols/plugin/plugin-messages.ts'

/** The words a plug-in puts into an error's `code` or `status` to say what kind of failure it is. */
const codes: ReadonlyMap<string, ErrorCode> = new Map([
  ['unreachable', 'TARGET_UNREACHABLE'],
  ['conflict', 'CONFLICT'],
  ['badRequest', 'BAD_REQUEST'],
])

/** Its message may hold anything, so it goes to the log only. */
export function thrownFailure(plugin: string, name: string, error: ThrownError): GatewayError {
  const code = codes.get(error.code ?? '') ?? 'TARGET_FAILED'
  const retry = code === 'TARGET_UNREACHABLE' ? { retryAfter: 5 } : {}
  return new GatewayError(code, `${plugin}: ${name}: ${error.message}`, {
    cause: error.stack ?? error.message,
    ...retry,
  })
}

export const overrun = (plugin: string, name: string, millis: number): GatewayError =>
  new GatewayError('TARGET_TIMEOUT', `${plugin}: ${name} took longer than ${millis} ms, so the plug-in was stopped`, {
    retryAfter: 5,
  })

/** For calls that ended because another one had to be stopped: worth a retry. */
export const interrupted = (plugin: string, name: string, reason: string): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `${plugin}: ${name} was interrupted: ${reason}`, { retryAfter: 1 })

export const died = (plugin: string, name: string, reason: string): GatewayError =>
  new GatewayError('TARGET_FAILED', `${plugin}: the plug-in's process ended during ${name}: ${reason}`, {
    retryAfter: 5,
  })
