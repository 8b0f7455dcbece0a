import { JavaException } from './java-exception.ts'

/** What the realm of a legacy script may ask of the process around it. */
export type BridgeRequest = 'http' | 'log' | 'audit' | 'random'

/** Texts in, texts out: no object of the process ever reaches a script. */
export type Bridge = (request: BridgeRequest, text: string) => string

let connected: Bridge | undefined

export function connectBridge(bridge: Bridge): void {
  connected = bridge
}

/** Whatever goes wrong on the other side is thrown as an exception of this realm. */
export function askBridge(request: BridgeRequest, value: unknown): unknown {
  try {
    if (connected !== undefined) return JSON.parse(connected(request, JSON.stringify(value)))
  } catch {}
  throw new JavaException(`the ${request} of the gateway did not answer`)
}
