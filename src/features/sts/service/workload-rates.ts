import type { Awaitable } from '#kernel/awaitable.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Rate, RateLimits } from '#kernel/rate-limit.ts'

interface LatestCall {
  readonly at: number
  /** It continued, and the shared rate does not know of it yet. */
  readonly owed: boolean
}

const rememberedWorkloads = 200_000

/**
 * The rates of workloads, which mostly come back long after a whole burst has. A call is free, and asks no one, if this
 * process had none for as long as a burst takes to come back. The next one within that time pays for both, so a process
 * leaves at most one call in that time uncounted.
 */
export class WorkloadRates {
  readonly #clock: Clock
  readonly #rateLimits: RateLimits
  readonly #latest = new BoundedCache<LatestCall>(rememberedWorkloads)

  constructor(clock: Clock, rateLimits: RateLimits) {
    this.#clock = clock
    this.#rateLimits = rateLimits
  }

  /** Undefined if this call may continue; otherwise the seconds until a call may. */
  take(key: string, rate: Rate): Awaitable<number | undefined> {
    const at = this.#clock().getTime()
    const latest = this.#latest.get(key)
    const age = at - (latest?.at ?? Number.NEGATIVE_INFINITY)
    const isFree = age < 0 || age >= (rate.burst / rate.perMinute) * 60_000
    // Of concurrent calls only one pays for the free one.
    this.#latest.set(key, { at, owed: isFree })
    return isFree ? undefined : this.#count(key, rate, latest?.owed === true)
  }

  async #count(key: string, rate: Rate, owed: boolean): Promise<number | undefined> {
    const wait = await this.#rateLimits.take('tokens of one workload', key, rate, owed ? 2 : 1)
    const latest = this.#latest.get(key)
    if (wait !== undefined && owed && latest !== undefined) this.#latest.set(key, { ...latest, owed })
    return wait
  }
}
