import { networkOf } from '#kernel/address.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { RateLimit } from '#kernel/rate-limit.ts'
import type { UniqueValue } from '#sdk/target/new-account.ts'

/** 0 means unlimited. */
interface LimitSettings {
  readonly submitsPerMinute: number
  readonly submitsPerValuePerHour: number
  readonly readsPerMinute: number
}

const rememberedKeys = 20_000

/** Limits registrations per address and per value. Each gateway counts for itself. Throws TOO_MANY_REQUESTS. */
export class Limits {
  readonly #settings: LimitSettings
  /** Separate limits, so that many cheap requests do not crowd out the ones that count. */
  readonly #submits: RateLimit
  readonly #reads: RateLimit
  readonly #values: RateLimit
  readonly #invitations: RateLimit

  constructor(settings: LimitSettings, clock: Clock) {
    this.#settings = settings
    this.#submits = new RateLimit(rememberedKeys, clock)
    this.#reads = new RateLimit(rememberedKeys, clock)
    this.#values = new RateLimit(rememberedKeys, clock)
    this.#invitations = new RateLimit(rememberedKeys, clock)
  }

  takeSubmit(address: string): void {
    take(this.#submits, networkOf(address), this.#settings.submitsPerMinute, 1)
  }

  takeRead(address: string): void {
    take(this.#reads, networkOf(address), this.#settings.readsPerMinute, 1)
  }

  /** A mail to an address that the user with this identity chooses. */
  takeInvitation(identity: string): void {
    const retryAfter = this.#invitations.take(identity, { burst: 100, perMinute: 2 })
    if (retryAfter !== undefined) {
      throw new GatewayError('TOO_MANY_REQUESTS', `${identity} sends too many invitations`, { retryAfter })
    }
  }

  takeValues(values: readonly UniqueValue[]): void {
    for (const { attribute, value } of values) {
      const key = secretHash(JSON.stringify([attribute.toLowerCase(), value.toLowerCase()]))
      take(this.#values, key, this.#settings.submitsPerValuePerHour, 60)
    }
  }
}

function take(counts: RateLimit, key: string, limit: number, minutes: number): void {
  if (limit === 0) return
  const retryAfter = counts.take(key, { burst: limit, perMinute: limit / minutes })
  if (retryAfter !== undefined)
    throw new GatewayError('TOO_MANY_REQUESTS', 'a registration form is used too often', { retryAfter })
}
