/** Maps with at most `width` calls under way. The first failure rejects, and no further call is started. */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length)
  const pending = items.entries()
  let failed = false
  const worker = async (): Promise<void> => {
    for (const [index, item] of pending) {
      if (failed) return
      try {
        results[index] = await work(item, index)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker))
  return results
}
