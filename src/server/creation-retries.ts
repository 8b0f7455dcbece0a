import { retryDelay } from '#kernel/leased-delivery.ts'
import type { Logger } from '#kernel/logger.ts'

/** One cause may prevent thousands of objects, and each attempt is logged. */
const mostLogged = 20

/**
 * Tries again to create what depends on the state of other systems, after a second, then ever more rarely, up to every five
 * minutes. Only the latest configuration counts.
 */
export class CreationRetries {
  readonly #log: Logger
  #attempts = 0
  #due: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /** Until the next attempt, or the end of the one that runs; undefined if nothing is missing. */
  get seconds(): number | undefined {
    return this.#due === undefined ? undefined : Math.max(1, Math.ceil((this.#due - performance.now()) / 1000))
  }

  /** Plans an attempt, or none if there are no problems. `isRepeated`: the attempt before it was for the same configuration. */
  plan(problems: readonly string[], isRepeated: boolean, attempt: () => void): void {
    this.close()
    if (problems.length === 0) return
    this.#attempts = isRepeated ? this.#attempts + 1 : 1
    const millis = retryDelay(this.#attempts, undefined)
    this.#due = performance.now() + millis
    this.#timer = setTimeout(attempt, millis).unref()
    const fields = { problems: problems.slice(0, mostLogged), count: problems.length, retrySeconds: this.seconds }
    if (isRepeated) this.#log.info('still not created; the gateway tries again', fields)
    else this.#log.warn('not created; the gateway tries again', fields)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#due = undefined
  }
}
