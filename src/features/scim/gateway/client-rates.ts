import type { Awaitable } from '#kernel/awaitable.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Rate, RateLimits } from '#kernel/rate-limit.ts'

const limit = 'requests of one SCIM client'
const rememberedClients = 10_000
/** A process takes this part of a burst at a time, so that most requests ask no one. */
const bundlesOfBurst = 20

/** A bundle must outlive the requests that wait for it. */
const shortestMillis = 100

interface RateParts {
  /** The Application: its gateways share the rate of a client. */
  readonly gateway: string
  readonly rate: Rate
  readonly rateLimits: RateLimits
  readonly clock: Clock
}

/**
 * The rate of each client, by its authenticated identity, which all processes share. Requests are taken in bundles. A
 * process keeps the rest of one until it is used, so that none of a client below its rate is lost, and at most as long as
 * the whole burst takes to return: a client exceeds its burst by at most one bundle in each process.
 */
export class ClientRates {
  readonly #parts: RateParts
  readonly #bundle: number
  readonly #left: BoundedCache<{ requests: number }>
  readonly #refills = new Map<string, Promise<void>>()

  constructor(parts: RateParts) {
    this.#parts = parts
    this.#bundle = Math.max(1, Math.floor(parts.rate.burst / bundlesOfBurst))
    this.#left = new BoundedCache(rememberedClients, parts.clock)
  }

  /** Throws TOO_MANY_REQUESTS beyond the rate, and TARGET_UNREACHABLE while the shared rate can't be read. */
  take(client: string): Awaitable<void> {
    return this.#takeHere(client) ? undefined : this.#take(client)
  }

  #takeHere(client: string): boolean {
    const left = this.#left.get(client)
    if (left === undefined || left.requests < 1) return false
    left.requests--
    return true
  }

  async #take(client: string): Promise<void> {
    do {
      const refill = this.#refills.get(client) ?? this.#refill(client)
      this.#refills.set(client, refill)
      await refill
    } while (!this.#takeHere(client))
  }

  async #refill(client: string): Promise<void> {
    const { gateway, rate, rateLimits, clock } = this.#parts
    try {
      const bundles = { burst: rate.burst / this.#bundle, perMinute: rate.perMinute / this.#bundle }
      const retryAfter = await rateLimits.take(limit, JSON.stringify([gateway, client]), bundles)
      if (retryAfter !== undefined) {
        const publicText = `This client has sent too many requests. Try again in ${retryAfter} seconds.`
        throw new GatewayError('TOO_MANY_REQUESTS', `too many ${limit}`, { publicText, retryAfter })
      }
      const end = new Date(clock().getTime() + Math.max(shortestMillis, (60_000 * rate.burst) / rate.perMinute))
      this.#left.set(client, { requests: this.#bundle }, end)
    } finally {
      this.#refills.delete(client)
    }
  }
}
