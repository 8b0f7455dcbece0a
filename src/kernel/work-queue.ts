import { GatewayError } from '#kernel/errors.ts'

/** Lets few pieces of work go on at a time, the others wait in order; when too many wait, the next is TOO_MANY_REQUESTS. */
export class WorkQueue {
  readonly #width: number
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(width: number, maxWaiting: number) {
    this.#width = width
    this.#maxWaiting = maxWaiting
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#width) this.#running++
    else await this.#turn()
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= this.#maxWaiting) {
      throw new GatewayError('TOO_MANY_REQUESTS', `${this.#waiting.length} pieces of work wait already`, {
        retryAfter: 1,
      })
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }
}
