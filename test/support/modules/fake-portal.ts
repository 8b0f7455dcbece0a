import type {
  MarkedPortalItem,
  OfferedParameters,
  Portal,
  PortalItem,
  PortalMemory,
} from '#features/portal/access/portal.ts'
import type { UserRef } from '#identity/identity.ts'
import type { NotificationChoices, NotificationSettings } from '#mail/notification.ts'
import { fakeService, type Public } from '#testing/workflows/call-store.ts'

/** The data of a portal, in memory. */
export class MemoryPortal implements Public<PortalMemory> {
  readonly #favorites = new Map<string, MarkedPortalItem[]>()
  readonly #recent = new Map<string, MarkedPortalItem[]>()
  readonly offers = new Map<string, OfferedParameters & { readonly identity: string }>()

  async favorites(user: UserRef): Promise<readonly MarkedPortalItem[]> {
    return this.#favorites.get(user.identity) ?? []
  }

  async addFavorite(user: UserRef, item: PortalItem): Promise<boolean> {
    const present = this.#favorites.get(user.identity) ?? []
    if (present.some((one) => same(one, item))) return true
    if (present.length >= 100) return false
    this.#favorites.set(user.identity, [...present, { ...item, at: new Date(0) }])
    return true
  }

  async removeFavorite(user: UserRef, item: PortalItem): Promise<void> {
    this.#favorites.set(
      user.identity,
      (this.#favorites.get(user.identity) ?? []).filter((one) => !same(one, item)),
    )
  }

  async recent(user: UserRef): Promise<readonly MarkedPortalItem[]> {
    return this.#recent.get(user.identity) ?? []
  }

  async noteUse(user: UserRef, item: PortalItem): Promise<void> {
    const others = (this.#recent.get(user.identity) ?? []).filter((one) => !same(one, item))
    this.#recent.set(user.identity, [{ ...item, at: new Date(0) }, ...others].slice(0, 20))
  }

  readonly #read = new Map<string, ReadonlySet<string>>()

  async readNotifications(user: UserRef): Promise<ReadonlySet<string>> {
    return this.#read.get(user.identity) ?? new Set()
  }

  async markRead(user: UserRef, ids: readonly string[], current?: readonly string[]): Promise<void> {
    const earlier = [...(this.#read.get(user.identity) ?? [])]
    this.#read.set(user.identity, new Set([...earlier.filter((id) => current?.includes(id) ?? true), ...ids]))
  }

  readonly #settings = new Map<string, NotificationSettings>()

  async notificationSettings(user: UserRef): Promise<NotificationSettings | undefined> {
    return this.#settings.get(user.identity)
  }

  async chooseNotifications(user: UserRef, { choices, language }: NotificationChoices): Promise<NotificationSettings> {
    const earlier = this.#settings.get(user.identity)
    const since = new Date(0)
    const chosen = Object.entries(choices).map(([kind, mail]) => [kind, { mail, since, before: mail }])
    const settings = { ...earlier, choices: { ...earlier?.choices, ...Object.fromEntries(chosen) } }
    this.#settings.set(user.identity, language === undefined ? settings : { ...settings, language })
    return this.#settings.get(user.identity) ?? settings
  }

  async offer(user: UserRef, offers: readonly OfferedParameters[]): Promise<readonly string[]> {
    return offers.map((offer) => {
      const reference = crypto.randomUUID()
      this.offers.set(reference, { ...offer, identity: user.identity })
      return reference
    })
  }

  async offered(user: UserRef, reference: string): Promise<OfferedParameters | undefined> {
    const found = this.offers.get(reference)
    return found?.identity === user.identity ? { workflow: found.workflow, parameters: found.parameters } : undefined
  }
}

const same = (a: PortalItem, b: PortalItem): boolean => a.kind === b.kind && a.name === b.name

/** A portal without its database. */
export type PortalParts = Omit<Portal, 'memory'> & { readonly memory: Public<PortalMemory> }

/** A portal with the test's parts. */
export const fakePortal = ({ memory = new MemoryPortal(), ...given }: Partial<PortalParts> = {}): Portal => ({
  orgs: [],
  urls: [],
  reports: [],
  workflows: [],
  memory: fakeService<PortalMemory>('portal memory', memory),
  mail: { isConfigured: true, hasDigest: true },
  ...given,
})
