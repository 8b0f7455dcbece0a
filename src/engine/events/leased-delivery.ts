import type { Clock } from '#kernel/clock.ts'

export interface DeliveryTimes {
  /** How often to look without being woken: for what another process stored and did not deliver. */
  readonly idleMillis: number
  /** How long one attempt may take. */
  readonly pushMillis: number
  readonly leaseMillis: number
}

export const defaultTimes: DeliveryTimes = { idleMillis: 5000, pushMillis: 10_000, leaseMillis: 30_000 }

/** The receiver rejected something, which is to be sent again. */
export interface DeliveryFailure {
  readonly reason: string
  readonly retryAfterMillis?: number
}

/** The right to deliver, while it lasts. */
export interface DeliveryTurn<T> {
  /** What claiming gave. */
  readonly claimed: T
  /** Fires when the process closes. */
  readonly closing: AbortSignal
  /** For one attempt: fires when it takes too long, or the process closes. */
  attempt(): AbortSignal
  /** Prolongs the turn early enough that an attempt never outlasts it; false when another has it now. */
  isOurs(): Promise<boolean>
  /** The receiver works: attempts in a row that failed are counted from 0 again. */
  succeeded(): void
}

export interface LeasedParts<T extends { readonly failures: number }> {
  readonly clock: Clock
  readonly times: DeliveryTimes
  /** Without something to deliver no turn is taken. */
  hasWork(): Promise<boolean>
  claim(times: { readonly now: Date; readonly until: Date }): Promise<T | undefined>
  release(outcome: { readonly failures: number; readonly retryAt?: Date }): Promise<void>
  /** Delivers what is due; returns the failure that stopped it, if any. */
  deliver(turn: DeliveryTurn<T>): Promise<DeliveryFailure | undefined>
  /** To be logged and counted. */
  failed(failure: DeliveryFailure, failures: number, restMillis: number): void
  /** The delivery itself failed, for example because the database did not answer. */
  broke(err: unknown): void
}

/** Delivers whenever there is something; of all processes, one does so at a time. Rests longer after each failure. */
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

  /** There is something to deliver. */
  wake(): void {
    this.#woken = true
    if (this.#parts.clock().getTime() >= this.#restUntil) this.#wake?.()
  }

  /** Cuts off an attempt that is under way; its items stay undelivered. */
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

  /** Resting after a failure is not cut short by new work, waiting for work is. */
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

  /** Delivers what is due; returns how long to rest afterwards. */
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
/** A receiver may ask to be left alone longer, but not for ever. */
const longestAskedMillis = 60 * 60_000

/**
 * How long to leave a receiver alone after `failures` in a row: twice as long each time, up to five minutes, of which
 * half is left to chance so that many senders do not come back together. What the receiver asked for counts for more.
 */
export function retryDelay(failures: number, askedMillis: number | undefined, chance = Math.random()): number {
  const whole = Math.min(firstMillis * 2 ** Math.min(failures - 1, 30), longestMillis)
  const ours = whole / 2 + (whole / 2) * chance
  return askedMillis === undefined ? ours : Math.max(ours, Math.min(askedMillis, longestAskedMillis))
}
