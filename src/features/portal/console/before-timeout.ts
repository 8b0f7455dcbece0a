import { once } from 'node:events'
import { GatewayError } from '#kernel/errors.ts'

/** Throws TARGET_TIMEOUT, and aborts the signal, if the systems behind a name take longer. */
export async function beforeTimeout<T>(
  name: string,
  millis: number,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(millis)
  const late = once(signal, 'abort').then((): never => {
    throw new GatewayError('TARGET_TIMEOUT', `no answer of ${name} within ${millis} ms`)
  })
  return await Promise.race([read(signal), late])
}
