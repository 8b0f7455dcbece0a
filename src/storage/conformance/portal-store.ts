import { expect, test } from 'vitest'
import { minute, type WorkflowStores } from '#storage/conformance/workflow-stores.ts'

const url = (name: string) => ({ kind: 'url', name })
const offer = (reference: string, parameters = { group: 'admins' }) => ({ reference, workflow: 'join', parameters })

/** What every PortalStore owes; `open` gives an empty database. */
export function portalStoreConformance(open: () => Promise<WorkflowStores>): void {
  const names = async ({ two }: WorkflowStores, login: string, list: 'favourite' | 'recent') =>
    (await two.portal.marks(login, list)).map(({ kind, name }) => `${kind} ${name}`)

  test('marks are kept in their order, once, up to a limit, whatever the letter case of the login', async () => {
    const stores = await open()
    const { portal } = stores.one
    for (const name of ['b', 'a', 'b']) expect(await portal.mark('Ann', 'favourite', url(name), 2)).toBe(true)
    expect(await portal.mark('ann', 'favourite', { kind: 'workflow', name: 'a' }, 2)).toBe(false)
    expect(await portal.mark('bob', 'favourite', { kind: 'workflow', name: 'a' }, 2)).toBe(true)
    expect(await names(stores, 'ANN', 'favourite')).toEqual(['url b', 'url a'])
    await portal.unmark('ann', 'favourite', url('b'))
    await portal.unmark('ann', 'favourite', url('\0'))
    expect(await names(stores, 'ann', 'favourite')).toEqual(['url a'])
    expect(await names(stores, 'ann', 'recent')).toEqual([])
    expect(await names(stores, '\0', 'recent')).toEqual([])
  })

  test('of what was used the latest stay, each at its latest place', async () => {
    const stores = await open()
    for (const name of ['a', 'b', 'c', 'a', 'd']) await stores.one.portal.note('ann', 'recent', url(name), 3)
    expect(await names(stores, 'ann', 'recent')).toEqual(['url c', 'url a', 'url d'])
  })

  test('what cannot be stored is refused', async () => {
    const { one } = await open()
    const refused = { code: 'BAD_REQUEST' }
    await expect(one.portal.mark('ann', 'favourite', url('\0'), 5)).rejects.toMatchObject(refused)
    await expect(one.portal.note('\ud800', 'recent', url('a'), 5)).rejects.toMatchObject(refused)
  })

  test('an offer is for its login alone, and for its time', async () => {
    const { one, two, sql } = await open()
    await one.portal.offer('Ann', [offer('r1'), offer('r2', { group: "'; drop table runs --" })], minute, 100)
    await one.portal.offer('ann', [offer('old')], -1, 100)
    expect(await two.portal.offered('ann', 'r1')).toEqual(offer('r1'))
    expect(await two.portal.offered('ann', 'r2')).toEqual(offer('r2', { group: "'; drop table runs --" }))
    expect(await two.portal.offered('bob', 'r1')).toBeUndefined()
    expect(await two.portal.offered('ann', 'r3')).toBeUndefined()
    expect(await two.portal.offered('ann', 'old')).toBeUndefined()
    await one.portal.offer('bob', [offer('r4')], minute, 100)
    expect(await sql('select reference from portal_offers order by reference')).toEqual(
      ['r1', 'r2', 'r4'].map((reference) => ({ reference })),
    )
  })

  test('of the offers to one login the latest stay', async () => {
    const { one } = await open()
    await one.portal.offer('bob', [offer('b')], minute, 2)
    for (const [i, name] of ['a1', 'a2', 'a3', 'a4'].entries()) {
      await one.portal.offer('ann', [offer(name)], minute + i * 1000, 2)
    }
    const kept = await Promise.all(['a1', 'a2', 'a3', 'a4'].map((name) => one.portal.offered('ann', name)))
    expect(kept.map((each) => each?.reference)).toEqual([undefined, 'a2', 'a3', 'a4'])
    expect(await one.portal.offered('bob', 'b')).toBeDefined()
  })
}
