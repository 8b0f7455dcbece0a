import type { MarkedPortalItem, OfferedParameters, PortalAccess, PortalItem, PortalMemory } from '#sdk/portal.ts'

/** What a portal remembers, for as long as the test lasts. */
export class MemoryPortal implements PortalMemory {
  readonly #favourites = new Map<string, MarkedPortalItem[]>()
  readonly #recent = new Map<string, MarkedPortalItem[]>()
  readonly offers = new Map<string, OfferedParameters & { readonly login: string }>()

  async favourites(login: string): Promise<readonly MarkedPortalItem[]> {
    return this.#favourites.get(login) ?? []
  }

  async addFavourite(login: string, item: PortalItem): Promise<boolean> {
    const present = this.#favourites.get(login) ?? []
    if (present.some((one) => same(one, item))) return true
    if (present.length >= 100) return false
    this.#favourites.set(login, [...present, { ...item, at: new Date(0) }])
    return true
  }

  async removeFavourite(login: string, item: PortalItem): Promise<void> {
    this.#favourites.set(
      login,
      (this.#favourites.get(login) ?? []).filter((one) => !same(one, item)),
    )
  }

  async recent(login: string): Promise<readonly MarkedPortalItem[]> {
    return this.#recent.get(login) ?? []
  }

  async noteUse(login: string, item: PortalItem): Promise<void> {
    const others = (this.#recent.get(login) ?? []).filter((one) => !same(one, item))
    this.#recent.set(login, [{ ...item, at: new Date(0) }, ...others].slice(0, 20))
  }

  async offer(login: string, offers: readonly OfferedParameters[]): Promise<readonly string[]> {
    return offers.map((offer) => {
      const reference = crypto.randomUUID()
      this.offers.set(reference, { ...offer, login })
      return reference
    })
  }

  async offered(login: string, reference: string): Promise<OfferedParameters | undefined> {
    const found = this.offers.get(reference)
    return found?.login === login ? { workflow: found.workflow, parameters: found.parameters } : undefined
  }
}

const same = (a: PortalItem, b: PortalItem): boolean => a.kind === b.kind && a.name === b.name

/** A portal that has what the test gives it. */
export const fakePortal = (given: Partial<PortalAccess> = {}): PortalAccess => ({
  orgs: [],
  urls: [],
  reports: [],
  workflows: [],
  memory: new MemoryPortal(),
  ...given,
})
