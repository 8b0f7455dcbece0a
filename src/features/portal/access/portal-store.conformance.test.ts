import { expect, test } from 'vitest'
import type { UserRef } from '#identity/identity.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores, type Stores } from '#testing/databases/stores.ts'
import { minute } from '#testing/databases/workflow-stores.ts'
import { userRef } from '#testing/workflows/user-ref.ts'

const url = (name: string) => ({ kind: 'url', name })
const offer = (reference: string, parameters = { group: 'admins' }) => ({ reference, workflow: 'join', parameters })

onEachDatabase('portal marks and offers', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  const names = async ({ two }: Stores, user: UserRef, list: 'favorite' | 'recent') =>
    (await two.portal.marks(user, list)).map(({ kind, name }) => `${kind} ${name}`)

  test('keeps each mark once, in order, up to a limit, for any login of the user', async () => {
    const stores = await open()
    const { portal } = stores.one
    for (const name of ['b', 'a', 'b']) expect(await portal.mark(userRef('Ann'), 'favorite', url(name), 2)).toBe(true)
    expect(await portal.mark(userRef('ann'), 'favorite', { kind: 'workflow', name: 'a' }, 2)).toBe(false)
    expect(await portal.mark(userRef('bob'), 'favorite', { kind: 'workflow', name: 'a' }, 2)).toBe(true)
    expect(await names(stores, userRef('ANN'), 'favorite')).toEqual(['url b', 'url a'])
    await portal.unmark(userRef('ann'), 'favorite', url('b'))
    await portal.unmark(userRef('ann'), 'favorite', url('\0'))
    expect(await names(stores, userRef('ann'), 'favorite')).toEqual(['url a'])
    expect(await names(stores, userRef('ann'), 'recent')).toEqual([])
  })

  test('keeps the latest items that were used, each at its latest position', async () => {
    const stores = await open()
    for (const name of ['a', 'b', 'c', 'a', 'd']) await stores.one.portal.note(userRef('ann'), 'recent', url(name), 3)
    expect(await names(stores, userRef('ann'), 'recent')).toEqual(['url c', 'url a', 'url d'])
  })

  test('keeps several marks at once, forgets others, and cuts the list at its limit', async () => {
    const stores = await open()
    const { portal } = stores.one
    const note = (...list: string[]) => list.map((name) => ({ kind: 'notification', name }))
    const read = async (user: UserRef) => (await stores.two.portal.marks(user, 'read')).map(({ name }) => name)
    await portal.noteAll(userRef('ann'), 'read', note('a', 'b'), { limit: 5 })
    await portal.noteAll(userRef('ann'), 'read', note('b', 'c'), { limit: 5 })
    await portal.noteAll(userRef('bob'), 'read', note('a'), { limit: 5 })
    expect(await read(userRef('ANN'))).toEqual(['a', 'b', 'c'])
    await portal.noteAll(userRef('ann'), 'read', note('d'), { limit: 5, keep: note('b', 'e') })
    expect(await read(userRef('ann'))).toEqual(['b', 'd'])
    await portal.noteAll(userRef('ann'), 'read', note('1', '2', '3', '4'), { limit: 3 })
    expect(await read(userRef('ann'))).toEqual(['2', '3', '4'])
    expect(await read(userRef('bob'))).toEqual(['a'])
    await portal.noteAll(userRef('bob'), 'read', [], { limit: 3, keep: [] })
    expect(await read(userRef('bob'))).toEqual([])
    const refused = portal.noteAll(userRef('bob'), 'read', note('\0'), { limit: 3 })
    await expect(refused).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test("rejects names that can't be stored", async () => {
    const { one } = await open()
    const refused = { code: 'BAD_REQUEST' }
    await expect(one.portal.mark(userRef('ann'), 'favorite', url('\0'), 5)).rejects.toMatchObject(refused)
  })

  test('returns an offer to its user only, until it expires', async () => {
    const { one, two, sql } = await open()
    await one.portal.offer(userRef('Ann'), [offer('r1'), offer('r2', { group: "'; drop table runs --" })], minute, 100)
    await one.portal.offer(userRef('ann'), [offer('old')], -1, 100)
    expect(await two.portal.offered(userRef('ann'), 'r1')).toEqual(offer('r1'))
    expect(await two.portal.offered(userRef('ann'), 'r2')).toEqual(offer('r2', { group: "'; drop table runs --" }))
    expect(await two.portal.offered(userRef('bob'), 'r1')).toBeUndefined()
    expect(await two.portal.offered(userRef('ann'), 'r3')).toBeUndefined()
    expect(await two.portal.offered(userRef('ann'), 'old')).toBeUndefined()
    await one.portal.offer(userRef('bob'), [offer('r4')], minute, 100)
    expect(await sql('select reference from portal_offers order by reference')).toEqual(
      ['r1', 'r2', 'r4'].map((reference) => ({ reference })),
    )
  })

  test('keeps the latest offers of a user', async () => {
    const { one } = await open()
    await one.portal.offer(userRef('bob'), [offer('b')], minute, 2)
    for (const [i, name] of ['a1', 'a2', 'a3', 'a4'].entries()) {
      await one.portal.offer(userRef('ann'), [offer(name)], minute + i * 1000, 2)
    }
    const kept = await Promise.all(['a1', 'a2', 'a3', 'a4'].map((name) => one.portal.offered(userRef('ann'), name)))
    expect(kept.map((each) => each?.reference)).toEqual([undefined, 'a2', 'a3', 'a4'])
    expect(await one.portal.offered(userRef('bob'), 'b')).toBeDefined()
  })
})
