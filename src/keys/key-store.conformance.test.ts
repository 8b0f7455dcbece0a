import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { minute, noLease } from '#testing/databases/workflow-stores.ts'

onEachDatabase('keys of endpoints', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('inserts a ring once and returns it as it was written', async () => {
    const { one, two } = await open()
    expect(await one.keys.get('aws')).toBeUndefined()
    const made = await Promise.all([one, two, one, two].map(({ keys }, i) => keys.swap('aws', 0, { from: i, o: 'ü' })))
    expect(made.filter(Boolean)).toHaveLength(1)
    const stored = await two.keys.get('aws')
    expect(stored).toMatchObject({ endpoint: 'aws', version: 1, ring: { from: made.indexOf(true), o: 'ü' } })
    expect(stored?.publications).toEqual({})
    expect(await one.keys.get('\0')).toBeUndefined()
    await expect(one.keys.swap('\0', 0, {})).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('rejects a change of another version than the stored one', async () => {
    const { one, two } = await open()
    await one.keys.swap('aws', 0, { n: 0 })
    await one.keys.swap('gcp', 0, { n: 0 })
    const settled = await Promise.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? one : two).keys.swap('aws', 1, { n: i + 1 })),
    )
    expect(settled.filter(Boolean)).toHaveLength(1)
    expect(await two.keys.get('aws')).toMatchObject({ version: 2, ring: { n: settled.indexOf(true) + 1 } })
    expect(await two.keys.swap('aws', 1, {})).toBe(false)
    expect(await two.keys.swap('aws', 3, {})).toBe(false)
    expect(await two.keys.swap('none', 1, {})).toBe(false)
    expect((await one.keys.list()).map(({ endpoint, version }) => [endpoint, version])).toEqual([
      ['aws', 2],
      ['gcp', 1],
    ])
  })

  test('leases publishing to one worker until it is released or expires', async () => {
    const { one, two } = await open()
    await one.keys.swap('aws', 0, {})
    expect(await one.keys.claim('none', 'a', minute)).toBe(false)
    const claims = await Promise.all(['a', 'b', 'c', 'd'].map((worker) => two.keys.claim('aws', worker, minute)))
    expect(claims.filter(Boolean)).toHaveLength(1)
    const winner = ['a', 'b', 'c', 'd'][claims.indexOf(true)] ?? ''
    expect(await one.keys.record('aws', winner, { folder: { written: 1 } })).toBe(true)
    expect(await one.keys.record('aws', 'other', { folder: { written: 2 } })).toBe(false)
    expect((await two.keys.get('aws'))?.publications).toEqual({ folder: { written: 1 } })
    expect(await one.keys.claim('aws', winner, noLease)).toBe(true)
    expect(await one.keys.record('aws', winner, { folder: { written: 3 } })).toBe(false)
    expect(await one.keys.claim('aws', 'late', minute)).toBe(true)
    await one.keys.release('aws', winner)
    expect(await two.keys.claim('aws', 'e', minute)).toBe(false)
    await one.keys.release('aws', 'late')
    expect(await two.keys.claim('aws', 'e', minute)).toBe(true)
  })

  test('records publications without changing the ring or its version', async () => {
    const { one } = await open()
    await one.keys.swap('aws', 0, { n: 0 })
    await one.keys.claim('aws', 'a', minute)
    await one.keys.record('aws', 'a', { x: {} })
    expect(await one.keys.swap('aws', 1, { n: 1 })).toBe(true)
    expect(await one.keys.get('aws')).toMatchObject({ version: 2, ring: { n: 1 }, publications: { x: {} } })
  })
})
