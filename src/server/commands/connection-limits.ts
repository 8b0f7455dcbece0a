import { wholeNumber } from '#server/commands/whole-number.ts'
import { type ConnectionLimits, defaultConnectionLimits } from '#server/http-limits.ts'

const { total, perAddress, headerSeconds, requestSeconds, idleSeconds } = defaultConnectionLimits

export const connectionLimitUsage = `  --connections N             open connections to the public listener (${total})
  --connections-per-address N open connections of one address; trusted proxies have no such limit (${perAddress})
  --header-seconds N          time for the headers of a request to arrive (${headerSeconds})
  --request-seconds N         time for a whole request to arrive (${requestSeconds})
  --idle-seconds N            time to keep a connection between two requests (${idleSeconds})`

export const connectionLimitOptions = {
  connections: { type: 'string' },
  'connections-per-address': { type: 'string' },
  'header-seconds': { type: 'string' },
  'request-seconds': { type: 'string' },
  'idle-seconds': { type: 'string' },
} as const

type Values = { readonly [name in keyof typeof connectionLimitOptions]?: string | undefined }

/** Throws an Error that says what is wrong. */
export function readConnectionLimits(values: Values): ConnectionLimits {
  const read = (name: keyof Values, min: number, max: number, fallback: number): number => {
    const text = values[name]
    if (text === undefined) return fallback
    const number = wholeNumber(text, min, max)
    if (number === undefined) throw new Error(`--${name} must be a whole number from ${min} to ${max}`)
    return number
  }
  return {
    total: read('connections', 32, 1_000_000, total),
    perAddress: read('connections-per-address', 8, 1_000_000, perAddress),
    headerSeconds: read('header-seconds', 1, 300, headerSeconds),
    requestSeconds: read('request-seconds', 1, 3600, requestSeconds),
    idleSeconds: read('idle-seconds', 1, 3600, idleSeconds),
  }
}
