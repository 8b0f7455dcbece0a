import type { LogLevel } from '#server/log.ts'

/** One answered request. Every field is safe to show: none of them carries a credential. */
export interface AccessEntry {
  readonly requestId: string
  readonly method: string
  readonly host: string
  readonly path: string
  readonly status: number
  readonly ms: number
  readonly application: string
  readonly subject: string | undefined
  /** Of a token exchange, once the signature of its subject token is verified. */
  readonly endpoint?: string | undefined
  readonly workload?: Readonly<Record<string, string | undefined>> | undefined
  readonly remote: string
}

export type AccessLog = (entry: AccessEntry) => void

export const noAccessLog: AccessLog = () => {}

const infoLevel = 30

/**
 * Lines of the same form as the other log's, for requests that went well. They are most of all lines, and their fields are
 * fixed, so they skip the general way through child loggers and redaction.
 */
export function createAccessLog(level: LogLevel, write: (line: string) => void): AccessLog {
  if (level !== 'debug' && level !== 'info') return noAccessLog
  return (entry) => write(`${JSON.stringify({ level: infoLevel, time: Date.now(), ...entry, msg: 'request' })}\n`)
}
