import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

/**
 * Between two pieces of work of one request: on SQLite no piece waits for anything, so the requests of others would.
 * Throws REQUEST_TIMEOUT if the client has gone, or was answered that the request took too long.
 */
export async function pauseWork({ signal }: Pick<GatewayRequest, 'signal'>): Promise<void> {
  await yieldToOthers()
  if (signal.aborted) throw new GatewayError('REQUEST_TIMEOUT', 'the client has gone')
}
