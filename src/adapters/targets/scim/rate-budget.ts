import { setTimeout as sleep } from 'node:timers/promises'

/** The server wants no call before the time that a call may take has passed. The call was not sent. */
export class PauseTooLong extends Error {
  readonly millis: number

  constructor(millis: number) {
    super(`the server wants no calls for ${Math.ceil(millis / 1000)} seconds`)
    this.millis = millis
  }
}

interface CallLimits {
  /** By `performance.now()`. */
  readonly deadline: number
  readonly signal: AbortSignal
}

/** As many as there are connections. */
const maxWidth = 32

/**
 * When the calls of a target may be sent, and how many at once. A pause that the server requests of one call holds for
 * all. After it, one call goes first, and each success doubles their number, so that the calls that waited don't run
 * into the limit together.
 */
export class RateBudget {
  readonly #waiting = new Set<() => void>()
  #pausedUntil = 0
  #width = maxWidth
  #running = 0

  /** Milliseconds until calls may be sent again. */
  get rest(): number {
    return Math.max(0, this.#pausedUntil - performance.now())
  }

  /** Sends the call when its turn comes. Throws PauseTooLong at once if that is after its deadline. */
  async run<T>(limits: CallLimits, send: () => Promise<T>): Promise<T> {
    try {
      await this.#enter(limits)
    } catch (error) {
      // The turn may be its own, and is the next one's now.
      this.#wake()
      throw error
    }
    try {
      return await send()
    } finally {
      this.#running--
      this.#wake()
    }
  }

  async #enter({ deadline, signal }: CallLimits): Promise<void> {
    for (;;) {
      const { rest } = this
      if (performance.now() + rest > deadline) throw new PauseTooLong(rest)
      if (rest > 0) await sleep(rest, undefined, { signal })
      else if (this.#running >= this.#width) await this.#turn(signal)
      else {
        this.#running++
        return
      }
    }
  }

  /** The server refuses calls, or will refuse the next one, for this long. */
  pause(millis: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + millis)
    this.#width = 1
  }

  /** The server took a call. */
  passed(): void {
    this.#width = Math.min(maxWidth, this.#width * 2)
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
    this.#waiting.delete(resolve)
    signal.throwIfAborted()
  }

  #wake(): void {
    const free = this.#width - this.#running
    for (const resolve of [...this.#waiting].slice(0, Math.max(0, free))) {
      this.#waiting.delete(resolve)
      resolve()
    }
  }
}
