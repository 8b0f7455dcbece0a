/** Returns the result of the latest call; undefined for earlier calls that finish later. */
export function latest<A, T>(load: (asked: A) => Promise<T>): (asked: A) => Promise<T | undefined> {
  let asks = 0
  return async (asked) => {
    asks += 1
    const mine = asks
    try {
      const loaded = await load(asked)
      return mine === asks ? loaded : undefined
    } catch (error) {
      if (mine === asks) throw error
      return undefined
    }
  }
}
