/** Answers whoever asked last; undefined to those whose answer, or failure, comes when somebody has asked since. */
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
