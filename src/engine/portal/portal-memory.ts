import { newSecret, secretHash } from '#kernel/ids.ts'
import type { MarkedPortalItem, PortalItem, PortalMemory } from '#sdk/filter/portal.ts'
import type { PortalMark, PortalStore } from '#storage/portal-store.ts'

const maxFavourites = 100
const maxRecent = 20
/** Beside those that are made now; a list that is asked for again and again fills no database. */
const maxOffers = 20_000
const offerMillis = 60 * 60 * 1000

export function createPortalMemory(store: PortalStore): PortalMemory {
  return {
    favourites: async (user) => (await store.marks(user, 'favourite')).flatMap(toItem),
    addFavourite: (user, item) => store.mark(user, 'favourite', item, maxFavourites),
    removeFavourite: (user, item) => store.unmark(user, 'favourite', item),
    recent: async (user) => (await store.marks(user, 'recent')).flatMap(toItem).reverse(),
    noteUse: (user, item) => store.note(user, 'recent', item, maxRecent),

    async offer(user, offers) {
      const references = offers.map(() => newSecret())
      const stored = offers.map((offer, i) => ({ ...offer, reference: secretHash(references[i] ?? '') }))
      if (stored.length > 0) await store.offer(user, stored, offerMillis, maxOffers)
      return references
    },
    async offered(user, reference) {
      const found = await store.offered(user, secretHash(reference))
      return found && { workflow: found.workflow, parameters: found.parameters }
    },
  }
}

const kinds: readonly PortalItem['kind'][] = ['url', 'workflow']

function toItem({ kind, name, at }: PortalMark): MarkedPortalItem[] {
  const known = kinds.find((word) => word === kind)
  return known === undefined ? [] : [{ kind: known, name, at }]
}
