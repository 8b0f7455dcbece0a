import { setImmediate } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'

export interface ApiServerMeter {
  /** Whether callers no longer wait for the API server of the cluster. */
  away(cluster: string, isAway: boolean): void
}

export interface BreakerParts {
  readonly clock: Clock
  readonly log?: Logger
  readonly meter?: ApiServerMeter | undefined
  /** How long a caller waits while the API server answers nothing at all. Sidecars wait for ten seconds. */
  readonly stallMillis?: number
}

/** A faster failure costs callers nothing, so they need no protection from it. */
const slowMillis = 1_000
/** The shortest time between two attempts while the breaker is open. */
const probeMillis = 1_000
/** An older result is not trusted; the same time as reviews are cached. */
const freshMillis = 10_000
const retryAfter = 2

/** One for each cluster. They outlive a configuration. */
export class ApiServerBreakers {
  readonly #parts: BreakerParts
  readonly #breakers = new Map<string, ApiServerBreaker>()

  constructor(parts: BreakerParts) {
    this.#parts = parts
  }

  of(cluster: string): ApiServerBreaker {
    const known = this.#breakers.get(cluster) ?? new ApiServerBreaker(cluster, this.#parts)
    this.#breakers.set(cluster, known)
    return known
  }
}

/**
 * Keeps callers from waiting, each for its own timeout, for an API server that hangs. It opens when a call stalls:
 * nothing was answered for `stallMillis` while it waited, or it failed after more than a second. While it is open,
 * callers get TARGET_UNREACHABLE at once, and one call at a time goes to the API server in the background. An
 * answer closes it.
 */
export class ApiServerBreaker {
  readonly #cluster: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #meter: ApiServerMeter | undefined
  readonly #stallMillis: number
  /** How often the API server has answered. */
  #answers = 0
  #failedAt = Number.NEGATIVE_INFINITY
  #failure: unknown
  /** A failure was logged, and no answer since. */
  #isSilent = false
  #isOpen = false
  /** Called when it opens. */
  readonly #waiting = new Set<() => void>()
  #probe: Promise<void> | undefined

  constructor(cluster: string, { clock, log = silentLogger, meter, stallMillis = 3_000 }: BreakerParts) {
    this.#cluster = cluster
    this.#clock = clock
    this.#log = log
    this.#meter = meter
    this.#stallMillis = stallMillis
    meter?.away(cluster, false)
  }

  /** Makes a call, and learns from its outcome. With `unlessOpen`, throws if its turn came after the breaker opened. */
  async call<T>(question: () => Promise<T>, { unlessOpen = false } = {}): Promise<T> {
    if (unlessOpen && this.#isOpen) throw this.#refusal()
    const [before, started] = [this.#answers, performance.now()]
    try {
      const answer = await question()
      this.#answered()
      return answer
    } catch (error) {
      const isSlow = performance.now() - started >= slowMillis
      if (isUnreachable(error)) this.#failed(error, isSlow && before === this.#answers)
      throw error
    }
  }

  /**
   * Waits for the result of `ask`, which uses `call`. While the breaker is open it does not try, except for one
   * caller at a time, which does not wait for it either (`isProbe`), unless the last failure is too old to count.
   */
  async through<T>(ask: (isProbe: boolean) => Promise<T>): Promise<T> {
    if (!this.#isOpen) return this.#wait(ask(false))
    const age = this.#clock().getTime() - this.#failedAt
    const isStale = age >= freshMillis
    if (this.#probe === undefined && age >= probeMillis) {
      const attempt = ask(true)
      const ended = (): void => {
        this.#probe = undefined
      }
      this.#probe = attempt.then(ended, ended)
      if (isStale) return this.#wait(attempt)
    }
    if (isStale && this.#probe !== undefined) await this.#wait(this.#probe)
    if (this.#isOpen) throw this.#refusal()
    return this.#wait(ask(false))
  }

  /** Waits for an attempt while the API server answers anything. The attempt itself may continue. */
  async #wait<T>(attempt: Promise<T>): Promise<T> {
    for (;;) {
      const before = this.#answers
      const outcome = await this.#firstOf(attempt)
      if (outcome === 'settled') return attempt
      // After a pause of this process, it reads pending answers before it opens.
      if (outcome === 'late') await setImmediate()
      if (outcome === 'late' && this.#answers !== before) continue
      if (outcome === 'late') this.#failed(new Error(`no answer for ${this.#stallMillis} ms`), true)
      throw this.#refusal()
    }
  }

  /** The first of: the end of the attempt, the breaker's opening, or the timeout. Never rejects. */
  async #firstOf(attempt: Promise<unknown>): Promise<'settled' | 'opened' | 'late'> {
    const { promise, resolve } = Promise.withResolvers<'settled' | 'opened' | 'late'>()
    const settled = (): void => resolve('settled')
    const opened = (): void => resolve('opened')
    attempt.then(settled, settled)
    if (!this.#isOpen) this.#waiting.add(opened)
    const timer = setTimeout(resolve, this.#stallMillis, 'late')
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(opened)
    }
  }

  #answered(): void {
    this.#answers++
    if (this.#isSilent) this.#log.info('the API server of a cluster answers again', { cluster: this.#cluster })
    this.#isSilent = false
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#meter?.away(this.#cluster, false)
  }

  #failed(error: unknown, isStalled: boolean): void {
    this.#failedAt = this.#clock().getTime()
    this.#failure = error
    const cluster = this.#cluster
    if (!this.#isSilent) this.#log.warn('the API server of a cluster cannot be asked', { cluster, err: error })
    this.#isSilent = true
    if (!isStalled || this.#isOpen) return
    this.#isOpen = true
    this.#log.warn('no workload waits for the API server until it answers again', { cluster })
    this.#meter?.away(cluster, true)
    for (const opened of this.#waiting) opened()
  }

  #refusal(): GatewayError {
    return new GatewayError('TARGET_UNREACHABLE', `the API server of "${this.#cluster}" does not answer`, {
      cause: this.#failure,
      retryAfter,
    })
  }
}

export const isUnreachable = (error: unknown): boolean =>
  error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE'
