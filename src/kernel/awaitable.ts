/** A value or a promise. Callers avoid `await` on a plain value, which would cost a turn of the event loop. */
export type Awaitable<T> = T | Promise<T>

/** `next` of the value: at once, or when the promise fulfils. */
export const andThen = <T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> =>
  value instanceof Promise ? value.then(next) : next(value)

/** Calls `done` with the result of `work`, or `failed` with what it threw. */
export function settle<T, R>(
  work: () => Awaitable<T>,
  done: (value: T) => R,
  failed: (thrown: unknown) => R,
): Awaitable<R> {
  let result: Awaitable<T>
  try {
    result = work()
  } catch (thrown) {
    return failed(thrown)
  }
  return result instanceof Promise ? result.then(done, failed) : done(result)
}

/** Asks one item after the other until one has a result. */
export function firstResult<T, R>(
  items: readonly T[],
  ask: (item: T, index: number) => Awaitable<R | undefined>,
  from = 0,
): Awaitable<R | undefined> {
  for (let i = from; i < items.length; i++) {
    const result = ask(items[i] as T, i)
    if (result instanceof Promise) return result.then((found) => found ?? firstResult(items, ask, i + 1))
    if (result !== undefined) return result
  }
  return undefined
}
