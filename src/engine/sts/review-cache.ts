import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'

export interface ReviewCacheOptions {
  readonly clock: Clock
  /** How many different questions are asked at once; the others wait. */
  readonly atOnce?: number
  /** How many may wait. */
  readonly waiting?: number
  /** How many answers are remembered. */
  readonly remembered?: number
}

/** The longest that a positive answer is remembered. An API server remembers its own as long. */
export const reviewMillis = 10_000

/**
 * Asks each question once at a time, and remembers an answer for at most ten seconds where it is worth that; the rest
 * is asked again. A burst waits in line, so that it reaches nobody at once.
 */
export class ReviewCache<T> {
  readonly #answers: BoundedCache<T>
  readonly #asking = new Map<string, Promise<T>>()
  readonly #line: (() => void)[] = []
  readonly #clock: Clock
  readonly #atOnce: number
  readonly #waiting: number
  #running = 0
  #sweeper: NodeJS.Timeout | undefined

  constructor({ clock, atOnce = 32, waiting = 20_000, remembered = 20_000 }: ReviewCacheOptions) {
    this.#clock = clock
    this.#atOnce = atOnce
    this.#waiting = waiting
    this.#answers = new BoundedCache(remembered, clock)
  }

  known(key: string): T | undefined {
    return this.#answers.get(key)
  }

  /**
   * `until` says until when an answer holds at most; undefined for one that is not to be remembered. Callers of the same
   * key share one question, so none of them may end it. Throws TARGET_UNREACHABLE when too many wait already.
   */
  ask(key: string, question: () => Promise<T>, until: (answer: T) => Date | undefined): Promise<T> {
    const known = this.#answers.get(key)
    if (known !== undefined) return Promise.resolve(known)
    const asked = this.#asking.get(key)
    if (asked !== undefined) return asked
    if (this.#line.length >= this.#waiting) {
      throw new GatewayError('TARGET_UNREACHABLE', `more than ${this.#waiting} token reviews wait`, { retryAfter: 5 })
    }
    const started = this.#inTurn(question)
      .then((answer) => {
        const end = until(answer)?.getTime()
        const latest = this.#clock().getTime() + reviewMillis
        if (end !== undefined) this.#remember(key, answer, new Date(Math.min(end, latest)))
        return answer
      })
      .finally(() => this.#asking.delete(key))
    this.#asking.set(key, started)
    return started
  }

  /** After a burst, what it left behind is forgotten when it has expired, rather than when others need the place. */
  #remember(key: string, answer: T, end: Date): void {
    this.#answers.set(key, answer, end)
    this.#sweeper ??= setTimeout(() => this.#sweep(), reviewMillis).unref()
  }

  #sweep(): void {
    this.#sweeper = this.#answers.sweep() ? setTimeout(() => this.#sweep(), reviewMillis).unref() : undefined
  }

  async #inTurn<A>(question: () => Promise<A>): Promise<A> {
    if (this.#running >= this.#atOnce) await new Promise<void>((go) => this.#line.push(go))
    else this.#running++
    try {
      return await question()
    } finally {
      const next = this.#line.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
