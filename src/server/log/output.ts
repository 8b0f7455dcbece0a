import process from 'node:process'
import { pino } from 'pino'
import type { Logger } from '#kernel/logger.ts'
import { type AccessLog, createAccessLog, createLogger, LineBuffer, type LogThreshold } from './log.ts'
import { logText } from './text.ts'

interface LogOutputOptions {
  readonly level: LogThreshold
  /** Lines for a person instead of JSON. */
  readonly isText: boolean
  readonly isColored: boolean
  /** The number of the worker, in every line. */
  readonly worker?: number | undefined
}

export interface LogOutput {
  readonly log: Logger
  readonly accessLog: AccessLog
  /** Writes lines of another process as they are, between the own ones. */
  pass(lines: string): void
  /** At the end. */
  flush(): void
}

/** The log on standard output. */
export function openLogOutput(options: LogOutputOptions): LogOutput {
  const { level, worker } = options
  const { write, pass, flush } = options.isText ? textOutput(options.isColored) : bufferedOutput()
  const fields = worker === undefined ? undefined : { worker }
  const log = createLogger(level, { write })
  return {
    log: fields === undefined ? log : log.with(fields),
    accessLog: createAccessLog(level, write, fields),
    pass,
    flush,
  }
}

interface Output extends Pick<LogOutput, 'pass' | 'flush'> {
  write(line: string): void
}

/** Short lines for a person, each as soon as it is logged. */
function textOutput(isColored: boolean): Output {
  const destination = pino.destination({ sync: true })
  const pass = (lines: string): void => void destination.write(lines)
  return { write: (line) => pass(logText(line, isColored)), pass, flush: () => {} }
}

/** Log lines are written in batches, at the latest after a second, and at the end. */
function bufferedOutput(): Output {
  const destination = pino.destination({ sync: false })
  const lines = new LineBuffer(destination)
  const timer = setInterval(() => lines.flush(), 1000)
  timer.unref()
  const flush = (): void => {
    clearInterval(timer)
    try {
      lines.flush()
      destination.flushSync()
    } catch {
      // Nothing was written, or the reader of the log has closed the pipe.
    }
  }
  process.once('exit', flush)
  const write = (line: string): void => lines.write(line)
  return { write, pass: write, flush }
}
