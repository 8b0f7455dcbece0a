import { GatewayError } from '#kernel/errors.ts'
import type { Target } from '#sdk/target.ts'

/** The same target; whatever it throws tells its name. */
export function withNamedFailures<T extends Target>(name: string, target: T): T {
  const named = Object.entries(target).map(([key, member]) => {
    if (typeof member !== 'function') return [key, member]
    const call = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await member(...args)
      } catch (error) {
        throw namedFailure(name, error)
      }
    }
    return [key, call]
  })
  return Object.fromEntries(named) as T
}

function namedFailure(name: string, thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError)) return thrown
  const { code, message, publicText, retryAfter, headers, keyword, problems } = thrown
  return new GatewayError(code, `target "${name}": ${message}`, {
    cause: thrown,
    publicText,
    headers,
    problems,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(keyword === undefined ? {} : { keyword }),
  })
}
