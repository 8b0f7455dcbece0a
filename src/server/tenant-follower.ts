import type { KnownObjects } from '#config/sources/stored-objects.ts'
import { tenantObjects } from '#features/scim/tenants/tenant.ts'
import type { TenantStore } from '#features/scim/tenants/tenant-store.ts'
import type { Logger } from '#kernel/logger.ts'

const lookEveryMillis = 2000

interface FollowerParts {
  readonly store: Pick<TenantStore, 'list'>
  readonly stored: KnownObjects
  readonly log: Logger
}

/** Puts the tenants of the database into the configuration of this process, and follows their changes. */
export class TenantFollower {
  readonly #parts: FollowerParts
  #known = '[]'
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #isReachable = true

  constructor(parts: FollowerParts) {
    this.#parts = parts
  }

  /** Returns whether they differ from those that were read before. Throws TARGET_UNREACHABLE while the database is away. */
  async read(): Promise<boolean> {
    const { store, stored } = this.#parts
    const tenants = await store.list()
    const known = JSON.stringify(tenants)
    if (known === this.#known) return false
    stored.list = tenants.map(tenantObjects)
    this.#known = known
    return true
  }

  /** Calls `reload` after each change. */
  follow(reload: () => Promise<void>, everyMillis = lookEveryMillis): void {
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look(reload).finally(() => {
        this.#looking = undefined
      })
    }, everyMillis)
    this.#timer.unref()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  /** Known tenants stay while the database is away. */
  async #look(reload: () => Promise<void>): Promise<void> {
    try {
      const isChanged = await this.read()
      this.#isReachable = true
      if (isChanged) await reload()
    } catch (err) {
      if (this.#isReachable) this.#parts.log.warn('the tenants could not be read; known tenants stay', { err })
      this.#isReachable = false
    }
  }
}
