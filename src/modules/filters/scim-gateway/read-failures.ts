import { errorCodes, GatewayError } from '#kernel/errors.ts'

const failures = new WeakSet<object>()

/**
 * The same look-ups, whose failures say that reading failed: a target's own words are about changes. Details stay in the
 * log.
 */
export function namingReadFailures<T extends object>(lookups: T): T {
  return new Proxy(lookups, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        const result: unknown = member.apply(target, args)
        return result instanceof Promise ? result.catch(failed) : result
      }
    },
  })
}

function failed(error: unknown): never {
  const isPlain = error instanceof GatewayError && error.publicText === errorCodes.TARGET_FAILED.text
  if (!isPlain || error.code !== 'TARGET_FAILED') throw error
  throw readFailure(
    error,
    'Reading from the target failed. The log of the gateway has the reason, under the id of this request.',
  )
}

/** Says of a failed read that it came after a workflow had ended, so that the change may be made. */
export function afterWorkflow(error: unknown): unknown {
  if (!(error instanceof GatewayError) || !failures.has(error)) return error
  const remedy = 'A workflow of this request had ended before: read the resource before you repeat the request.'
  return readFailure(error, `${error.publicText} ${remedy}`)
}

function readFailure(cause: GatewayError, publicText: string): GatewayError {
  const error = new GatewayError('TARGET_FAILED', `a read failed: ${cause.message}`, { cause, publicText })
  failures.add(error)
  return error
}
