import { setTimeout as wait } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import type { ScimCall } from './scim-call.ts'

const maxAttempts = 5
const maxPauseMillis = 50

/**
 * Does the work again, on what is there by then, when someone else changed the resource between its being read and
 * written. Not where the client said which version it means: then it is told (412). Throws TARGET_UNREACHABLE with
 * Retry-After when it never comes to an end.
 */
export async function retryWhileChanged<T>(
  call: Pick<ScimCall, 'ifMatch' | 'ifNoneMatch'>,
  work: () => Promise<T>,
): Promise<T> {
  const named = (call.ifMatch !== undefined && call.ifMatch.trim() !== '*') || call.ifNoneMatch !== undefined
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (named || !(error instanceof GatewayError) || error.code !== 'VERSION_MISMATCH') throw error
      if (attempt >= maxAttempts) {
        throw new GatewayError('TARGET_UNREACHABLE', `changed by others ${attempt} times meanwhile`, {
          cause: error,
          publicText: 'Other requests are changing the resource. Try again.',
          retryAfter: 1,
        })
      }
      await wait(Math.random() * maxPauseMillis * attempt)
    }
  }
}
