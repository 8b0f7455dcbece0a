import { type LogLevel, writeLog } from './logger.ts'

/** java.io.PrintStream, into the log. */
export class PrintStream {
  readonly #level: LogLevel

  constructor(level: LogLevel) {
    this.#level = level
  }

  println(value: unknown = ''): void {
    writeLog(this.#level, value)
  }

  print(value: unknown): void {
    writeLog(this.#level, value)
  }
}

/** java.lang.System. There are no properties, and nothing of the gateway's environment. */
export const System = {
  out: new PrintStream('info'),
  err: new PrintStream('warn'),

  currentTimeMillis(): number {
    return Date.now()
  },

  getenv(_name: unknown): null {
    return null
  },

  getProperty(_name: unknown, fallback: unknown = null): unknown {
    return fallback
  },

  lineSeparator(): string {
    return '\n'
  },
}
