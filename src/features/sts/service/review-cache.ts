import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'

interface ReviewCacheOptions {
  readonly clock: Clock
  /** How many different queries run at once; the others wait. */
  readonly atOnce?: number
  /** How many may wait. */
  readonly waiting?: number
  /** How many answers are cached. */
  readonly remembered?: number
}

/** The longest time that a positive answer is cached. An API server caches its own as long. */
export const reviewMillis = 10_000

/** Runs each query once at a time, and caches a suitable answer for at most ten seconds. A burst waits in a queue. */
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
   * `until` returns how long an answer is valid at most; undefined for one that must not be cached. Callers of the
   * same key share one query, so none of them may abort it. Throws TARGET_UNREACHABLE if too many wait already.
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

  /** After a burst, expired answers are removed instead of waiting until others need the room. */
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
