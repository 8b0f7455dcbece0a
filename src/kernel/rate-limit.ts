import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'

interface Rate {
  readonly burst: number
  readonly perMinute: number
}

interface Bucket {
  readonly level: number
  readonly at: number
}

/**
 * A token bucket per key. Remembers at most `limit` keys; it forgets the least recently used first, which then
 * starts full again.
 */
export class RateLimit {
  readonly #buckets: BoundedCache<Bucket>
  readonly #clock: Clock

  constructor(limit: number, clock: Clock) {
    this.#buckets = new BoundedCache(limit)
    this.#clock = clock
  }

  /** Undefined if this call may continue; otherwise the seconds until a call may. */
  take(key: string, { burst, perMinute }: Rate): number | undefined {
    const now = this.#clock().getTime()
    const perMilli = perMinute / 60_000
    const known = this.#buckets.get(key)
    // A clock that was set back must not empty a bucket for hours.
    const passed = known === undefined ? 0 : Math.max(0, now - known.at)
    const level = known === undefined ? burst : Math.min(burst, known.level + passed * perMilli)
    const allowed = level >= 1
    this.#buckets.set(key, { level: allowed ? level - 1 : level, at: now })
    return allowed ? undefined : Math.max(1, Math.ceil((1 - level) / perMilli / 1000))
  }

  get size(): number {
    return this.#buckets.size
  }
}
