import { type DestinationStream, type Logger as Pino, pino } from 'pino'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { redact } from '#kernel/redaction.ts'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** JSON lines on stdout, or wherever `destination` leads; every field passes redaction, which also describes errors. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  // Errors are plain objects by then; pino's own serializer would take them for errors again.
  const options = { level, base: null, serializers: { err: (err: unknown) => err } }
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
