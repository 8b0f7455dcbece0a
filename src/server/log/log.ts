import { type DestinationStream, type Logger as Pino, pino, stdTimeFunctions } from 'pino'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { redact } from '#kernel/text/redaction.ts'
import { tracer } from '#kernel/tracing.ts'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogThreshold = (typeof logLevels)[number]

/** Writes JSON lines to stdout or `destination`. Every field is redacted; errors become plain objects. */
export function createLogger(level: LogThreshold, destination?: DestinationStream): Logger {
  // Redaction has made errors plain objects, which pino would otherwise serialize again.
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: (err: unknown) => err },
  }
  return wrap(destination === undefined ? pino(options) : pino(options, destination))
}

function wrap(log: Pino): Logger {
  return {
    debug: (message, fields) => log.debug(located(clean(fields)), message),
    info: (message, fields) => log.info(located(clean(fields)), message),
    warn: (message, fields) => log.warn(located(clean(fields)), message),
    error: (message, fields) => log.error(located(clean(fields)), message),
    with: (fields) => wrap(log.child(clean(fields))),
  }
}

const clean = (fields: LogFields | undefined): Record<string, unknown> => (fields === undefined ? {} : redact(fields))

/** Adds the trace and the run that the line belongs to, while tracing is on. */
function located<T extends object>(fields: T): T {
  const span = tracer?.current()
  if (span === undefined) return fields
  const { context, run } = span
  const ids = { trace_id: context.traceId, span_id: context.spanId }
  return run === undefined ? { ...fields, ...ids } : { workflowId: run, ...fields, ...ids }
}

/** One answered request. No field contains a credential. */
interface AccessEntry {
  readonly requestId: string
  readonly method: string
  readonly host: string
  readonly path: string
  readonly status: number
  readonly ms: number
  readonly application: string
  readonly subject: string | undefined
  /** The subject of a token exchange, once the signature of its subject token is verified. */
  readonly endpoint?: string | undefined
  readonly workload?: Readonly<Record<string, string | undefined>> | undefined
  readonly remote: string
}

export type AccessLog = (entry: AccessEntry) => void

export const noAccessLog: AccessLog = () => {}

/**
 * Lines in the format of the other log, for successful requests, each with the fields. They are most of all lines and their fields are
 * fixed, so they skip child loggers and redaction.
 */
export function createAccessLog(
  level: LogThreshold,
  write: (line: string) => void,
  fields?: Readonly<Record<string, number>>,
): AccessLog {
  if (level !== 'debug' && level !== 'info') return noAccessLog
  return (entry) => {
    const time = new Date().toISOString()
    write(`${JSON.stringify({ level: 'info', time, ...fields, ...located(entry), msg: 'request' })}\n`)
  }
}

/** A `pino.destination`, or a similar stream. */
interface Destination {
  write(text: string): unknown
}

const batchLength = 16_000

/** Collects lines and writes them in batches: a destination measures its whole buffer at each write, which is slow for single lines. */
export class LineBuffer {
  readonly #destination: Destination
  #lines = ''

  constructor(destination: Destination) {
    this.#destination = destination
  }

  write(line: string): void {
    this.#lines += line
    if (this.#lines.length >= batchLength) this.flush()
  }

  flush(): void {
    if (this.#lines === '') return
    const lines = this.#lines
    this.#lines = ''
    this.#destination.write(lines)
  }
}
