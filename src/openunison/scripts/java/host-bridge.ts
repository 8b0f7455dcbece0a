import type { LogLevel } from '#kernel/logger.ts'
import { IOException, JavaException, ProvisioningException, UnsupportedOperationException } from './java-exception.ts'
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

type GatewayAnswer =
  | { readonly value: unknown }
  | { readonly failure: 'unreachable' | 'refused' | 'unsupported'; readonly message: string }

/** Asks the gateway for something that it has: a target, an entry of the directory. Waits for the answer. */
export function askGateway(service: string, request: object): unknown {
  const answer = askBridge('gateway', { service, ...request }) as GatewayAnswer
  if (!('failure' in answer)) return answer.value
  if (answer.failure === 'unreachable') throw new IOException(answer.message)
  if (answer.failure === 'unsupported') throw new UnsupportedOperationException(answer.message)
  throw new ProvisioningException(answer.message)
}
