import { GatewayError } from '#kernel/errors.ts'

/** Limits of a queue; absent means unlimited. */
interface QueueLimits {
  /** Pieces of work on one key that run at the same time; 1 by default. */
  readonly width?: number
  /** Pieces of work on one key that run or wait. */
  readonly maxPerKey?: number
  /** Pieces of work on all keys that run or wait. */
  readonly maxPending?: number
  /** How long a piece of work waits for its turn. */
  readonly waitMillis?: number
  /** The error for work that is refused; TOO_MANY_REQUESTS by default. */
  readonly refuse?: (reason: string) => Error
}

interface Line {
  running: number
  readonly waiting: Set<() => void>
}

const tooMany = (reason: string): Error => new GatewayError('TOO_MANY_REQUESTS', reason, { retryAfter: 1 })

/**
 * Runs the work on one key in order of arrival, `width` pieces at a time; work on different keys doesn't wait for
 * each other. Refuses work beyond its limits instead of starting it.
 */
export class KeyedQueue {
  readonly #limits: QueueLimits
  readonly #width: number
  readonly #lines = new Map<string, Line>()
  #pending = 0

  constructor(limits: QueueLimits = {}) {
    this.#limits = limits
    this.#width = limits.width ?? 1
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const leave = await this.enter(key)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /**
   * For a part of work that already runs under another key. It is never refused, because that would leave half of
   * the work done, and `maxPending` does not count it.
   */
  async runWithin<T>(key: string, work: () => Promise<T>): Promise<T> {
    const leave = await this.#join(key, undefined)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /** Waits for a turn. The caller ends it with the returned function; further calls have no effect. */
  async enter(key: string): Promise<() => void> {
    const { maxPending = Number.POSITIVE_INFINITY, maxPerKey = Number.POSITIVE_INFINITY } = this.#limits
    const line = this.#lines.get(key)
    if (this.#pending >= maxPending || (line !== undefined && line.running + line.waiting.size >= maxPerKey)) {
      throw this.#refusal(`${this.#pending} pieces of work run or wait, too many for another on "${key}"`)
    }
    this.#pending++
    let isPending = true
    const settle = (): void => {
      if (isPending) this.#pending--
      isPending = false
    }
    try {
      const leave = await this.#join(key, this.#limits.waitMillis)
      return () => {
        settle()
        leave()
      }
    } catch (error) {
      settle()
      throw error
    }
  }

  /** How many keys have work. */
  get size(): number {
    return this.#lines.size
  }

  async #join(key: string, waitMillis: number | undefined): Promise<() => void> {
    const line = this.#lines.get(key) ?? { running: 0, waiting: new Set() }
    this.#lines.set(key, line)
    if (line.running < this.#width) line.running++
    else await this.#turn(key, line, waitMillis)
    let isRunning = true
    return () => {
      if (isRunning) this.#leave(key, line)
      isRunning = false
    }
  }

  #turn(key: string, line: Line, waitMillis: number | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const giveUp = () => {
      line.waiting.delete(start)
      reject(this.#refusal(`work on "${key}" waited longer than ${waitMillis} ms`))
    }
    const timer = waitMillis === undefined ? undefined : setTimeout(giveUp, waitMillis)
    const start = () => {
      clearTimeout(timer)
      resolve()
    }
    line.waiting.add(start)
    return promise
  }

  /** The next one takes over the turn, so that no other gets in between. */
  #leave(key: string, line: Line): void {
    const [next] = line.waiting
    if (next !== undefined) {
      line.waiting.delete(next)
      next()
    } else if (--line.running === 0) {
      this.#lines.delete(key)
    }
  }

  #refusal(reason: string): Error {
    return (this.#limits.refuse ?? tooMany)(reason)
  }
}
