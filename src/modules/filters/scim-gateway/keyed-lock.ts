import { GatewayError } from '#kernel/errors.ts'

/**
 * Runs work on the same key one after the other, in the order it came. Work on different keys runs side by side.
 * Throws TOO_MANY_REQUESTS when more than `limit` pieces of work wait or run.
 */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<unknown>>()
  readonly #limit: number
  #pending = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#pending >= this.#limit) {
      throw new GatewayError('TOO_MANY_REQUESTS', `${this.#pending} changes are waiting`, { retryAfter: 1 })
    }
    this.#pending++
    try {
      return await this.within(key, work)
    } finally {
      this.#pending--
    }
  }

  /** For a part of work that runs already under another key: it is never refused, since that would leave half of it done. */
  async within<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const turn = before === undefined ? work() : before.then(work, work)
    this.#tails.set(key, turn)
    try {
      return await turn
    } finally {
      if (this.#tails.get(key) === turn) this.#tails.delete(key)
    }
  }
}
