import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores, type Stores } from '#testing/databases/stores.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'
import type { NewStoredFactor } from './second-factor-store.ts'

const factor = (id: string, more: Partial<NewStoredFactor> = {}): NewStoredFactor => ({
  id,
  owner: 'ann',
  ownerName: 'name of ann',
  kind: 'totp',
  name: 'Phone',
  data: 'g1.sealed',
  counter: 7,
  ...more,
})

const used = (id: string, owner: string, ownerName = `name of ${owner}`) => ({ id, owner, ownerName })

onEachDatabase('second factors', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  const ids = async ({ two }: Stores, owner = 'ann') => (await two.secondFactors.ofOwner(owner)).map(({ id }) => id)

  test('returns factors as they were added, to their owner only, in order', async () => {
    const stores = await open()
    const { secondFactors } = stores.one
    const before = Date.now() - 60_000
    for (const id of ['b', 'a']) expect(await secondFactors.add(factor(id), 5, [], [])).toBe('added with codes')
    const [first] = await stores.two.secondFactors.ofOwner('ann')
    const { ownerName: _ownerName, ...shown } = factor('b')
    expect(first).toMatchObject({ ...shown, lastUsed: undefined })
    expect(first?.created.getTime()).toBeGreaterThan(before)
    expect(await ids(stores)).toEqual(['b', 'a'])
    expect(await ids(stores, 'bob')).toEqual([])
    expect(await ids(stores, '\0')).toEqual([])
  })

  test('rejects factors beyond the limit, existing ids, and all but one of concurrent first factors', async () => {
    const stores = await open()
    const { one, two } = stores
    const tried = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        (i % 2 === 0 ? one : two).secondFactors.add(factor(`f${i}`), 1, [`hash ${i}`], []),
      ),
    )
    expect(tried.filter((outcome) => outcome !== 'refused')).toEqual(['added with codes'])
    expect(await one.secondFactors.recoveryCodes('ann')).toBe(1)
    const [id = ''] = await ids(stores)
    expect(await one.secondFactors.add(factor(id), 5, [], [])).toBe('refused')
    expect(await one.secondFactors.add(factor('other', { owner: 'bob' }), 1, [], [])).toBe('added with codes')
  })

  test('moves a counter from its current value, once', async () => {
    const { one, two } = await open()
    await one.secondFactors.add(factor('a'), 5, [], [])
    expect(await one.secondFactors.use(used('a', 'bob'), 7, 9)).toBe(false)
    const tried = await Promise.all([
      one.secondFactors.use(used('a', 'ann'), 7, 9),
      two.secondFactors.use(used('a', 'ann'), 7, 8),
    ])
    expect(tried.filter(Boolean)).toHaveLength(1)
    const [known] = await two.secondFactors.ofOwner('ann')
    expect(known?.lastUsed).toBeInstanceOf(Date)
    expect(await one.secondFactors.use(used('a', 'ann'), 7, 10)).toBe(false)
    expect(await one.secondFactors.use(used('a', 'ann'), known?.counter ?? 0, 10)).toBe(true)
  })

  test('renames and removes a factor for its owner, with audit rows', async () => {
    const stores = await open()
    const { secondFactors, audit } = stores.one
    await secondFactors.add(factor('a'), 5, ['h1'], [auditRow('row-1')])
    await secondFactors.add(factor('b'), 5, ['h2'], [])
    expect(await secondFactors.rename('a', 'bob', 'Mine')).toBe(false)
    expect(await secondFactors.rename('a', 'ann', "'; drop table runs --")).toBe(true)
    await expect(secondFactors.rename('a', 'ann', '\0')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect((await secondFactors.ofOwner('ann'))[0]?.name).toBe("'; drop table runs --")
    expect(await secondFactors.remove('a', 'bob', [auditRow('row-2')])).toBe(false)
    expect(await secondFactors.remove('a', 'ann', [auditRow('row-3')])).toBe(true)
    expect(await secondFactors.recoveryCodes('ann')).toBe(1)
    expect(await secondFactors.remove('b', 'ann', [])).toBe(true)
    expect(await secondFactors.recoveryCodes('ann')).toBe(0)
    const { rows } = await audit.list({ limit: 10 })
    expect(rows.map(({ id }) => id).sort()).toEqual(['row-1', 'row-3'])
  })

  test('accepts a recovery code once, and not after it was replaced', async () => {
    const { one, two } = await open()
    expect(await one.secondFactors.replaceRecoveryCodes('ann', ['h1'], [])).toBe(false)
    expect(await one.secondFactors.add(factor('a'), 5, ['h1', 'h2'], [])).toBe('added with codes')
    expect(await one.secondFactors.add(factor('b'), 5, ['h9'], [])).toBe('added')
    const used = await Promise.all([
      one.secondFactors.useRecoveryCode('ann', 'h1', []),
      two.secondFactors.useRecoveryCode('ann', 'h1', []),
    ])
    expect(used.filter(Boolean)).toHaveLength(1)
    expect(await two.secondFactors.useRecoveryCode('bob', 'h2', [])).toBe(false)
    expect(await one.secondFactors.replaceRecoveryCodes('ann', ['h3'], [])).toBe(true)
    expect(await one.secondFactors.useRecoveryCode('ann', 'h2', [])).toBe(false)
    expect(await one.secondFactors.recoveryCodes('ann')).toBe(1)
  })

  test('removes all factors and recovery codes of their owner, with audit rows only if there were any', async () => {
    const stores = await open()
    const { secondFactors, audit } = stores.one
    await secondFactors.add(factor('a'), 5, ['h1'], [])
    await secondFactors.add(factor('b'), 5, [], [])
    await secondFactors.add(factor('c', { owner: 'bob', ownerName: 'name of bob' }), 5, [], [])
    expect(await secondFactors.removeAll('ann', [auditRow('row-1')])).toBe(2)
    expect(await secondFactors.removeAll('ann', [auditRow('row-2')])).toBe(0)
    expect(await secondFactors.removeAll('\0', [auditRow('row-3')])).toBe(0)
    expect([await ids(stores), await secondFactors.recoveryCodes('ann')]).toEqual([[], 0])
    expect(await ids(stores, 'bob')).toEqual(['c'])
    expect((await audit.list({ limit: 10 })).rows.map(({ id }) => id)).toEqual(['row-1'])
  })

  test('removes all factors that were last used under a name', async () => {
    const stores = await open()
    const { secondFactors } = stores.one
    const bob = { owner: 'bob', ownerName: 'name of bob' }
    await secondFactors.add(factor('a'), 5, ['h1'], [])
    await secondFactors.add(factor('b'), 5, [], [])
    await secondFactors.add(factor('c', bob), 5, [], [])
    expect(await secondFactors.removeAllOfName('name of ann', [])).toBe(2)
    expect(await secondFactors.removeAllOfName('name of ann', [])).toBe(0)
    expect([await ids(stores), await secondFactors.recoveryCodes('ann')]).toEqual([[], 0])
    expect(await ids(stores, 'bob')).toEqual(['c'])
    expect(await secondFactors.removeAllOfName('\0', [])).toBe(0)
  })

  test('gives a name to the user who used it last', async () => {
    const stores = await open()
    const { secondFactors } = stores.one
    await secondFactors.add(factor('a'), 5, [], [])
    expect(await secondFactors.use(used('a', 'ann', 'new name'), 7, 8)).toBe(true)
    expect(await secondFactors.removeAllOfName('name of ann', [])).toBe(0)
    await secondFactors.add(factor('b', { owner: 'bob', ownerName: 'new name' }), 5, [], [])
    expect(await secondFactors.removeAllOfName('new name', [])).toBe(1)
    expect([await ids(stores), await ids(stores, 'bob')]).toEqual([['a'], []])
  })

  test('moves all factors of a user to the name of the last use', async () => {
    const stores = await open()
    const { secondFactors } = stores.one
    for (const id of ['a', 'b']) await secondFactors.add(factor(id), 5, [], [])
    expect(await secondFactors.use(used('a', 'ann', 'new name'), 7, 8)).toBe(true)
    expect(await secondFactors.removeAllOfName('name of ann', [])).toBe(0)
    await secondFactors.add(factor('c', { owner: 'ann', ownerName: 'third name' }), 5, [], [])
    expect(await secondFactors.removeAllOfName('new name', [])).toBe(0)
    expect(await secondFactors.removeAllOfName('third name', [])).toBe(3)
  })
})
