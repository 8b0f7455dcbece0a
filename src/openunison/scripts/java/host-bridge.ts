import type { LogLevel } from '#kernel/logger.ts'
import { JavaException } from './java-exception.ts'
import { javaText } from './java-value.ts'

/** What the realm of a legacy script may call in its process. */
type BridgeRequest = 'http' | 'log' | 'audit' | 'random' | 'digest' | 'gateway'

/** Only texts pass: no object of the process ever reaches a script. */
export type Bridge = (request: BridgeRequest, text: string) => string

let connected: Bridge | undefined

export function connectBridge(bridge: Bridge): void {
  connected = bridge
}

/** Errors of the other side are thrown as exceptions of this realm. */
export function askBridge(request: BridgeRequest, value: unknown): unknown {
  try {
    if (connected !== undefined) return JSON.parse(connected(request, JSON.stringify(value)))
  } catch {}
  throw new JavaException(`the ${request} of the gateway did not answer`)
}

export function writeLog(level: LogLevel, message: unknown, thrown?: unknown): void {
  const text = thrown === undefined || thrown === null ? '' : ` ${javaText(thrown)}`
  askBridge('log', { level, message: javaText(message) + text })
}
