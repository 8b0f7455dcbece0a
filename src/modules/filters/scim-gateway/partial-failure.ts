import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { ChangePending } from './pending-change.ts'
import type { ScimCall } from './scim-call.ts'

/**
 * Runs work of several steps, which tells each that is done. When it fails part way, the error says how far it came, and
 * so does the log; the error itself stays what it was.
 */
export async function tellingProgress(
  { log }: GatewayParts,
  { exchange, ifMatch }: ScimCall,
  group: string,
  wanted: number,
  work: (done: () => void) => Promise<void>,
): Promise<void> {
  let done = 0
  try {
    await work(() => void done++)
  } catch (thrown) {
    if (thrown instanceof ChangePending) throw thrown
    const error = asGatewayError(thrown)
    if (wanted < 2) throw error
    // What was done has given the group another version.
    const remedy = `the same request again${ifMatch === undefined ? '' : ', without If-Match,'} makes the others`
    log.error('a change of a group stopped part way', { group, done, wanted, requestId: exchange.request.id })
    throw new GatewayError(error.code, `${done} of ${wanted} changes were made: ${error.message}`, {
      cause: thrown,
      publicText: `${error.publicText} ${done} of ${wanted} changes were made; ${remedy}.`,
      headers: error.headers,
      ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
      ...(error.keyword === undefined ? {} : { keyword: error.keyword }),
    })
  }
}
