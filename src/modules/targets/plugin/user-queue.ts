/** Runs the work for one user after that user's earlier work has ended; work for different users runs side by side. */
export class UserQueue {
  readonly #tails = new Map<string, Promise<unknown>>()

  async run<T>(userID: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(userID) ?? Promise.resolve()
    const result = before.then(work, work)
    const tail = result.catch(() => {})
    this.#tails.set(userID, tail)
    try {
      return await result
    } finally {
      if (this.#tails.get(userID) === tail) this.#tails.delete(userID)
    }
  }
}
