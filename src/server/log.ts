import { type DestinationStream, type Logger as Pino, pino } from 'pino'
import { GatewayError } from '#kernel/errors.ts'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { redact } from '#kernel/redaction.ts'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** JSON lines on stdout, or wherever `destination` leads; every field passes redaction. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  const options = { level, base: null, serializers: { err: serializeError } }
  return wrap(destination === undefined ? pino(options) : pino(options, destination))
}

function wrap(log: Pino): Logger {
  return {
    debug: (message, fields) => log.debug(clean(fields), message),
    info: (message, fields) => log.info(clean(fields), message),
    warn: (message, fields) => log.warn(clean(fields), message),
    error: (message, fields) => log.error(clean(fields), message),
    with: (fields) => wrap(log.child(clean(fields))),
  }
}

const clean = (fields: LogFields | undefined): Record<string, unknown> => (fields === undefined ? {} : redact(fields))

/**
 * Message, code and the chain of causes; bounded, because a cause can be anything. A refusal has no stack, since any
 * client can cause one.
 */
function serializeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return String(error).slice(0, 2000)
  const isRefusal = error instanceof GatewayError && error.isRefusal
  return {
    type: error.name,
    message: error.message.slice(0, 2000),
    ...('code' in error ? { code: String(error.code) } : {}),
    ...(isRefusal ? { status: error.status } : {}),
    ...(depth === 0 && !isRefusal ? { stack: error.stack?.slice(0, 4000) } : {}),
    ...(error.cause === undefined || depth >= 5 ? {} : { cause: serializeError(error.cause, depth + 1) }),
  }
}
