import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'

/** Far more than any schema needs; what reads a body recursively is bounded by it. */
export const maxDepth = 64

const decoder = new TextDecoder('utf-8', { fatal: true })
const [quote, backslash, openList, openObject, closeList, closeObject] = Buffer.from('"\\[{]}')

/** Throws INVALID_JSON when it is not UTF-8, not JSON, or nested too deep. */
export function parseBody(bytes: Buffer): JsonValue {
  if (isTooDeep(bytes)) {
    const publicText = `The request body is nested deeper than ${maxDepth} levels.`
    throw new GatewayError('INVALID_JSON', 'the body is nested too deep', { publicText })
  }
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch (cause) {
    throw new GatewayError('INVALID_JSON', 'the body does not parse', { cause })
  }
}

/** Asked before parsing, which would build it all. */
function isTooDeep(bytes: Buffer): boolean {
  let depth = 0
  let inText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === backslash) at++
      else if (byte === quote) inText = false
    } else if (byte === quote) {
      inText = true
    } else if (byte === openList || byte === openObject) {
      if (++depth > maxDepth) return true
    } else if (byte === closeList || byte === closeObject) {
      depth--
    }
  }
  return false
}
