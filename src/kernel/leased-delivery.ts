import type { Clock } from './clock.ts'

export interface DeliveryTimes {
  /** How often to look without a wake-up, for what another process stored and did not deliver. */
  readonly idleMillis: number
  /** The maximum duration of one attempt. */
  readonly pushMillis: number
  readonly leaseMillis: number
}

export const defaultTimes: DeliveryTimes = { idleMillis: 5000, pushMillis: 10_000, leaseMillis: 30_000 }

/** The receiver rejected something that must be sent again. */
export interface DeliveryFailure {
  readonly reason: string
  readonly retryAfterMillis?: number | undefined
}

/** The right to deliver, while it lasts. */
export interface DeliveryTurn<T> {
  /** The result of the claim. */
  readonly claimed: T
  /** Fires when the process closes. */
  readonly closing: AbortSignal
  /** For one attempt: fires when it takes too long, or the process closes. */
  attempt(): AbortSignal
  /** Extends the lease early enough that an attempt never outlasts it; false if another process has it now. */
  isOurs(): Promise<boolean>
  /** The receiver works: resets the count of consecutive failures. */
  succeeded(): void
}

interface LeasedParts<T extends { readonly failures: number }> {
  readonly clock: Clock
  readonly times: DeliveryTimes
  /** Takes a turn only if there is something to deliver. */
  hasWork(): Promise<boolean>
  claim(times: { readonly now: Date; readonly until: Date }): Promise<T | undefined>
  release(outcome: { readonly failures: number; readonly retryAt?: Date }): Promise<void>
  /** Delivers what is due; returns the failure that stopped it, if any. */
  deliver(turn: DeliveryTurn<T>): Promise<DeliveryFailure | undefined>
  /** For logs and metrics. */
  failed(failure: DeliveryFailure, failures: number, restMillis: number): void
  /** The delivery itself failed, for example because the database did not answer. */
  broke(err: unknown): void
}

/** Delivers as soon as there is something; only one process at a time does so. Rests longer after each failure. */
export class LeasedDelivery<T extends { readonly failures: number }> {
  readonly #parts: LeasedParts<T>
  readonly #closing = new AbortController()
  readonly #done: Promise<void>
  #wake: (() => void) | undefined
  #woken = false
  #restUntil = 0
  #claimedAt = 0

  constructor(parts: LeasedParts<T>) {
    this.#parts = parts
    this.#done = this.#run()
  }

  /** Call when there is something to deliver. */
  wake(): void {
    this.#woken = true
    if (this.#parts.clock().getTime() >= this.#restUntil) this.#wake?.()
  }

  /** Aborts a running attempt; its items stay undelivered. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#wake?.()
    await this.#done
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      let rest: number
      try {
        this.#woken = false
        rest = await this.#turn()
      } catch (err) {
        this.#parts.broke(err)
        rest = this.#parts.times.idleMillis
      }
      await this.#sleep(rest)
    }
  }

  /** New work ends the wait for work, but not the rest after a failure. */
  #sleep(rest: number): Promise<void> {
    const resting = this.#parts.clock().getTime() < this.#restUntil
    if (this.#closing.signal.aborted || (this.#woken && !resting)) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(end, rest)
      timer.unref()
      this.#wake = end
      function end(): void {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Delivers what is due; returns how long to rest. */
  async #turn(): Promise<number> {
    const { hasWork, release, deliver, times } = this.#parts
    if (!(await hasWork())) return times.idleMillis
    const claimed = await this.#claim()
    if (claimed === undefined) return times.idleMillis
    let { failures } = claimed
    const closing = this.#closing.signal
    let failure: DeliveryFailure | undefined
    try {
      failure = await deliver({
        claimed,
        closing,
        attempt: () => AbortSignal.any([closing, AbortSignal.timeout(times.pushMillis)]),
        isOurs: () => this.#isOurTurn(),
        succeeded: () => {
          failures = 0
        },
      })
    } catch (error) {
      await release({ failures }).catch(() => {})
      throw error
    }
    if (failure !== undefined && !closing.aborted) return await this.#rest(failure, failures + 1)
    await release({ failures })
    return times.idleMillis
  }

  async #rest(failure: DeliveryFailure, failures: number): Promise<number> {
    const { clock, failed, release } = this.#parts
    const rest = retryDelay(failures, failure.retryAfterMillis)
    this.#restUntil = clock().getTime() + rest
    failed(failure, failures, rest)
    await release({ failures, retryAt: new Date(this.#restUntil) })
    return rest
  }

  #claim(): Promise<T | undefined> {
    const now = this.#parts.clock()
    this.#claimedAt = now.getTime()
    return this.#parts.claim({ now, until: new Date(now.getTime() + this.#parts.times.leaseMillis) })
  }

  async #isOurTurn(): Promise<boolean> {
    const age = this.#parts.clock().getTime() - this.#claimedAt
    return age < this.#parts.times.leaseMillis / 3 || (await this.#claim()) !== undefined
  }
}

const firstMillis = 1000
const longestMillis = 5 * 60_000
/** The maximum rest that a receiver may request. */
const longestAskedMillis = 60 * 60_000

/**
 * How long to rest after `failures` in a row: twice as long each time, up to five minutes. Half of it is random, so
 * that many senders do not return together. A longer rest that the receiver requested wins.
 */
export function retryDelay(failures: number, askedMillis: number | undefined, chance = Math.random()): number {
  const whole = Math.min(firstMillis * 2 ** Math.min(failures - 1, 30), longestMillis)
  const ours = whole / 2 + (whole / 2) * chance
  return askedMillis === undefined ? ours : Math.max(ours, Math.min(askedMillis, longestAskedMillis))
}
