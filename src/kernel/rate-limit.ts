import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'

export interface Rate {
  readonly burst: number
  readonly perMinute: number
}

/** The rates of callers: a token bucket for each key of each limit. */
export interface RateLimits {
  /**
   * Undefined if this call may continue; otherwise the seconds until a call may. `limit` is one of a few names. `calls` are
   * this one and earlier ones that are not counted yet.
   */
  take(limit: string, key: string, rate: Rate, calls?: number): Promise<number | undefined>
}

/** Throws TOO_MANY_REQUESTS beyond the rate. `limit` names what there are too many of. */
export async function requireRate(limits: RateLimits, limit: string, key: string, rate: Rate): Promise<void> {
  const retryAfter = await limits.take(limit, key, rate)
  if (retryAfter !== undefined) throw new GatewayError('TOO_MANY_REQUESTS', `too many ${limit}`, { retryAfter })
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
  take(key: string, { burst, perMinute }: Rate, calls = 1): number | undefined {
    const now = this.#clock().getTime()
    const perMilli = perMinute / 60_000
    const known = this.#buckets.get(key)
    // A clock that was set back must not empty a bucket for hours.
    const passed = known === undefined ? 0 : Math.max(0, now - known.at)
    const level = known === undefined ? burst : Math.min(burst, known.level + passed * perMilli)
    const allowed = level >= 1
    this.#buckets.set(key, { level: allowed ? Math.max(0, level - calls) : level, at: now })
    return allowed ? undefined : Math.max(1, Math.ceil((1 - level) / perMilli / 1000))
  }

  get size(): number {
    return this.#buckets.size
  }
}

const rememberedKeys = 20_000

/** For a gateway of one process. Each limit has its own keys, so that many cheap calls do not crowd out those that count. */
export class MemoryRateLimits implements RateLimits {
  readonly #limits = new Map<string, RateLimit>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async take(limit: string, key: string, rate: Rate, calls?: number): Promise<number | undefined> {
    const known = this.#limits.get(limit) ?? new RateLimit(rememberedKeys, this.#clock)
    this.#limits.set(limit, known)
    return known.take(secretHash(key), rate, calls)
  }

  /** Its keys are bounded already. */
  async prune(): Promise<void> {}
}
