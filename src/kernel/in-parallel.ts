import type { Awaitable } from '#kernel/awaitable.ts'

/**
 * Maps with at most `width` concurrent calls. After the first failure it starts no further call, waits for the
 * running ones, and then throws the failure.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Awaitable<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length)
  const pending = items.entries()
  let failure: { readonly error: unknown } | undefined
  const worker = async (): Promise<void> => {
    for (const [index, item] of pending) {
      if (failure !== undefined) return
      try {
        results[index] = await work(item, index)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker))
  if (failure !== undefined) throw failure.error
  return results
}
