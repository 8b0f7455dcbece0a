import { askBridge } from './bridge.ts'
import { javaText } from './java-value.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export function writeLog(level: LogLevel, message: unknown, thrown?: unknown): void {
  const told = thrown === undefined || thrown === null ? '' : ` ${javaText(thrown)}`
  askBridge('log', { level, message: javaText(message) + told })
}

/** org.apache.log4j.Logger. Everything goes to the log of the gateway, which decides what is kept. */
export class Logger {
  static getLogger(_name?: unknown): Logger {
    return new Logger()
  }

  trace(message: unknown, thrown?: unknown): void {
    writeLog('debug', message, thrown)
  }

  debug(message: unknown, thrown?: unknown): void {
    writeLog('debug', message, thrown)
  }

  info(message: unknown, thrown?: unknown): void {
    writeLog('info', message, thrown)
  }

  warn(message: unknown, thrown?: unknown): void {
    writeLog('warn', message, thrown)
  }

  error(message: unknown, thrown?: unknown): void {
    writeLog('error', message, thrown)
  }

  fatal(message: unknown, thrown?: unknown): void {
    writeLog('error', message, thrown)
  }

  isDebugEnabled(): boolean {
    return true
  }

  isInfoEnabled(): boolean {
    return true
  }
}
