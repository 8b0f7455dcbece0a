import { networkOf } from '#kernel/address.ts'
import { type RateLimits, requireRate } from '#kernel/rate-limit.ts'
import type { UniqueValue } from '#sdk/target/new-account.ts'

/** 0 means unlimited. */
interface LimitSettings {
  readonly submitsPerMinute: number
  readonly submitsPerValuePerHour: number
  readonly readsPerMinute: number
}

/** Limits the registrations of one form per address and per value. Rejects with TOO_MANY_REQUESTS. */
export class Limits {
  readonly #settings: LimitSettings
  readonly #form: string
  readonly #rateLimits: RateLimits

  constructor(settings: LimitSettings, form: string, rateLimits: RateLimits) {
    this.#settings = settings
    this.#form = form
    this.#rateLimits = rateLimits
  }

  async takeSubmit(address: string): Promise<void> {
    await this.#take('registrations from one address', [networkOf(address)], this.#settings.submitsPerMinute)
  }

  async takeRead(address: string): Promise<void> {
    await this.#take('reads of a registration form', [networkOf(address)], this.#settings.readsPerMinute)
  }

  /** A mail to an address that the user with this identity chooses. */
  async takeInvitation(identity: string): Promise<void> {
    await requireRate(this.#rateLimits, 'invitations of one user', identity, { burst: 100, perMinute: 2 })
  }

  async takeValues(values: readonly UniqueValue[]): Promise<void> {
    for (const { attribute, value } of values) {
      const key = [attribute.toLowerCase(), value.toLowerCase()]
      await this.#take('registrations of one value', key, this.#settings.submitsPerValuePerHour, 60)
    }
  }

  async #take(limit: string, key: readonly string[], burst: number, minutes = 1): Promise<void> {
    if (burst === 0) return
    await requireRate(this.#rateLimits, limit, JSON.stringify([this.#form, ...key]), {
      burst,
      perMinute: burst / minutes,
    })
  }
}
