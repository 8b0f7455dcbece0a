import { expect, test } from 'vitest'
import { createPortalMemory } from '#engine/portal.ts'
import { secretHash } from '#kernel/ids.ts'
import { PortalStore } from '#storage/portal-store.ts'
import { memoryDatabase, rowsOf } from '#testing/memory-database.ts'
import { userRef } from '#testing/user-ref.ts'

const ann = userRef('ann')

test("D13: the stored form of a reference can't be used", async () => {
  const database = memoryDatabase()
  const memory = createPortalMemory(new PortalStore(database))
  const offers = [
    { workflow: 'join', parameters: { group: 'a' } },
    { workflow: 'join', parameters: { group: 'b' } },
  ]
  const [first = '', second = ''] = await memory.offer(ann, offers)
  expect(first).toMatch(/^[\w-]{43}$/)
  expect(first).not.toBe(second)
  const stored = (await rowsOf(database, 'portal_offers')).map(({ reference }) => reference)
  expect(stored).toEqual([secretHash(first), secretHash(second)].sort())
  expect(await memory.offered(ann, second)).toEqual(offers[1])
  expect(await memory.offered(ann, secretHash(first))).toBeUndefined()
  expect(await memory.offered(userRef('bob'), first)).toBeUndefined()
  expect(await memory.offer(ann, [])).toEqual([])
})

test('lists recent items latest first, without unknown kinds', async () => {
  const store = new PortalStore(memoryDatabase())
  const memory = createPortalMemory(store)
  for (const [i, kind] of ['url', 'other', 'workflow'].entries()) {
    await store.mark(ann, 'favourite', { kind, name: `${i}` }, 10)
    await store.note(ann, 'recent', { kind, name: `${i}` }, 10)
  }
  expect((await memory.favourites(ann)).map(({ name }) => name)).toEqual(['0', '2'])
  expect((await memory.recent(ann)).map(({ name }) => name)).toEqual(['2', '0'])
})
