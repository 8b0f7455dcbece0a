import { newSecret, secretHash } from '#kernel/ids.ts'
import type { MarkedPortalItem, PortalItem, PortalMemory } from '#sdk/portal.ts'
import type { PortalMark, PortalStore } from '#storage/portal-store.ts'

const maxFavourites = 100
const maxRecent = 20
/** Beside those that are made now; a list that is asked for again and again fills no database. */
const maxOffers = 20_000
const offerMillis = 60 * 60 * 1000

export function createPortalMemory(store: PortalStore): PortalMemory {
  return {
    favourites: async (login) => (await store.marks(login, 'favourite')).flatMap(toItem),
    addFavourite: (login, item) => store.mark(login, 'favourite', item, maxFavourites),
    removeFavourite: (login, item) => store.unmark(login, 'favourite', item),
    recent: async (login) => (await store.marks(login, 'recent')).flatMap(toItem).reverse(),
    noteUse: (login, item) => store.note(login, 'recent', item, maxRecent),

    async offer(login, offers) {
      const references = offers.map(() => newSecret())
      const stored = offers.map((offer, i) => ({ ...offer, reference: secretHash(references[i] ?? '') }))
      if (stored.length > 0) await store.offer(login, stored, offerMillis, maxOffers)
      return references
    },
    async offered(login, reference) {
      const found = await store.offered(login, secretHash(reference))
      return found && { workflow: found.workflow, parameters: found.parameters }
    },
  }
}

const kinds: readonly PortalItem['kind'][] = ['url', 'workflow']

function toItem({ kind, name, at }: PortalMark): MarkedPortalItem[] {
  const known = kinds.find((word) => word === kind)
  return known === undefined ? [] : [{ kind: known, name, at }]
}
