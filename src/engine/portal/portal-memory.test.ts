import { expect, test } from 'vitest'
import { createPortalMemory } from '#engine/portal/portal-memory.ts'
import type { UserRef } from '#identity/identity.ts'
import { secretHash } from '#kernel/ids.ts'
import { userRef } from '#storage/conformance/user-ref.ts'
import type { PortalMark, PortalOffer, PortalStore } from '#storage/portal-store.ts'

const unused = async (): Promise<never> => {
  throw new Error('not in this test')
}
const unusedStore: PortalStore = {
  marks: unused,
  mark: unused,
  note: unused,
  unmark: unused,
  offer: unused,
  offered: unused,
}

test('D13: what is stored of a reference does not help to use it', async () => {
  const stored: (PortalOffer & { readonly user: UserRef })[] = []
  const memory = createPortalMemory({
    ...unusedStore,
    offer: async (user, offers) => void stored.push(...offers.map((offer) => ({ ...offer, user }))),
    offered: async (user, reference) =>
      stored.find((one) => one.user.identity === user.identity && one.reference === reference),
  })
  const offers = [
    { workflow: 'join', parameters: { group: 'a' } },
    { workflow: 'join', parameters: { group: 'b' } },
  ]
  const [first = '', second = ''] = await memory.offer(userRef('ann'), offers)
  expect(first).toMatch(/^[\w-]{43}$/)
  expect(first).not.toBe(second)
  expect(stored.map(({ reference }) => reference)).toEqual([secretHash(first), secretHash(second)])
  expect(await memory.offered(userRef('ann'), second)).toEqual(offers[1])
  expect(await memory.offered(userRef('ann'), secretHash(first))).toBeUndefined()
  expect(await memory.offered(userRef('bob'), first)).toBeUndefined()
  expect(await memory.offer(userRef('ann'), [])).toEqual([])
})

test('what was used last comes first, and kinds that are not known are left out', async () => {
  const marks: PortalMark[] = ['url', 'other', 'workflow'].map((kind, i) => ({ kind, name: `${i}`, at: new Date(i) }))
  const memory = createPortalMemory({ ...unusedStore, marks: async () => marks })
  expect((await memory.favourites(userRef('ann'))).map(({ name }) => name)).toEqual(['0', '2'])
  expect((await memory.recent(userRef('ann'))).map(({ name }) => name)).toEqual(['2', '0'])
})
