import { expect, test } from 'vitest'
import { createPortalMemory } from '#engine/portal/portal-memory.ts'
import { secretHash } from '#kernel/ids.ts'
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
  const stored: (PortalOffer & { readonly login: string })[] = []
  const memory = createPortalMemory({
    ...unusedStore,
    offer: async (login, offers) => void stored.push(...offers.map((offer) => ({ ...offer, login }))),
    offered: async (login, reference) => stored.find((one) => one.login === login && one.reference === reference),
  })
  const offers = [
    { workflow: 'join', parameters: { group: 'a' } },
    { workflow: 'join', parameters: { group: 'b' } },
  ]
  const [first = '', second = ''] = await memory.offer('ann', offers)
  expect(first).toMatch(/^[\w-]{43}$/)
  expect(first).not.toBe(second)
  expect(stored.map(({ reference }) => reference)).toEqual([secretHash(first), secretHash(second)])
  expect(await memory.offered('ann', second)).toEqual(offers[1])
  expect(await memory.offered('ann', secretHash(first))).toBeUndefined()
  expect(await memory.offered('bob', first)).toBeUndefined()
  expect(await memory.offer('ann', [])).toEqual([])
})

test('what was used last comes first, and kinds that are not known are left out', async () => {
  const marks: PortalMark[] = ['url', 'other', 'workflow'].map((kind, i) => ({ kind, name: `${i}`, at: new Date(i) }))
  const memory = createPortalMemory({ ...unusedStore, marks: async () => marks })
  expect((await memory.favourites('ann')).map(({ name }) => name)).toEqual(['0', '2'])
  expect((await memory.recent('ann')).map(({ name }) => name)).toEqual(['2', '0'])
})
