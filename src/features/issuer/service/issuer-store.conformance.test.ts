import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import type { IssuerRecord } from './issuer-store.ts'

const start = Date.UTC(2030, 0, 1)
const after = (seconds: number): Date => new Date(start + seconds * 1000)
const record = (id: string, more: Partial<IssuerRecord> = {}): IssuerRecord => ({
  issuer: 'people',
  model: 'AuthorizationCode',
  id,
  data: 'sealed',
  expires: after(60),
  ...more,
})

onEachDatabase('issuer records', (freshUrl) => {
  const open = async () => {
    const { one, two } = await openStores(await freshUrl())
    return [one.issuer, two.issuer] as const
  }

  test('finds a record by its whole key only', async () => {
    const [store] = await open()
    const whole = record('a', { grantId: 'g', userCode: 'u' })
    expect(await store.put(whole)).toBe(true)
    expect(await store.find(whole, after(1))).toEqual({ ...whole, version: 1, consumed: undefined })
    expect(await store.find({ ...whole, issuer: 'others' }, after(1))).toBeUndefined()
    expect(await store.find({ ...whole, model: 'RefreshToken' }, after(1))).toBeUndefined()
    expect(await store.find({ ...whole, id: 'A' }, after(1))).toBeUndefined()
    expect(await store.findByUserCode({ issuer: 'people', model: whole.model, userCode: 'u' }, after(1))).toMatchObject(
      whole,
    )
    expect(
      await store.findByUserCode({ issuer: 'others', model: whole.model, userCode: 'u' }, after(1)),
    ).toBeUndefined()
  })

  test('does not return an expired record that is not deleted yet', async () => {
    const [store] = await open()
    await store.put(record('a', { userCode: 'u' }))
    expect(await store.find(record('a'), after(59))).toBeDefined()
    expect(await store.find(record('a'), after(60))).toBeUndefined()
    expect(await store.findByUserCode({ ...record('a'), userCode: 'u' }, after(60))).toBeUndefined()
    expect(await store.consume(record('a'), after(60))).toBe(false)
  })

  test('lets one of fifty concurrent callers consume a record', async () => {
    const stores = await open()
    await stores[0].put(record('a'))
    const got = await Promise.all(
      Array.from({ length: 50 }, (_, i) => stores[i % 2 === 0 ? 0 : 1].consume(record('a'), after(1))),
    )
    expect(got.filter(Boolean)).toHaveLength(1)
    expect((await stores[1].find(record('a'), after(2)))?.consumed).toEqual(after(1))
    expect(await stores[0].consume(record('unknown'), after(1))).toBe(false)
  })

  test('replaces a record and keeps it consumed', async () => {
    const [store] = await open()
    await store.put(record('a'))
    await store.consume(record('a'), after(1), 'consumed')
    expect((await store.find(record('a'), after(1)))?.data).toBe('consumed')
    expect(await store.consume(record('a'), after(2), 'again')).toBe(false)
    expect(await store.put(record('a', { data: 'other', expires: after(90) }))).toBe(true)
    expect(await store.find(record('a'), after(70))).toMatchObject({ data: 'other', consumed: after(1), version: 3 })
  })

  test('rejects a change of a record that another changed meanwhile', async () => {
    const [one, two] = await open()
    const now = after(1)
    expect(await one.put(record('a', { data: '1' }), { version: 0, now })).toBe(true)
    expect(await two.put(record('a', { data: 'x' }), { version: 0, now })).toBe(false)
    expect(await two.put(record('a', { data: '2' }), { version: 1, now })).toBe(true)
    expect(await one.put(record('a', { data: 'x' }), { version: 1, now })).toBe(false)
    expect((await one.find(record('a'), now))?.data).toBe('2')
    expect(await one.put(record('a', { data: 'anew', expires: after(120) }), { version: 0, now: after(60) })).toBe(true)
    expect(await one.find(record('a'), after(61))).toMatchObject({ data: 'anew', consumed: undefined })
  })

  test('deletes the records of a grant, of one model and issuer', async () => {
    const [store] = await open()
    for (const [id, more] of [
      ['a', { grantId: 'g' }],
      ['b', { grantId: 'g' }],
      ['c', { grantId: 'h' }],
      ['d', { grantId: 'g', model: 'RefreshToken' }],
      ['e', { grantId: 'g', issuer: 'others' }],
    ] as const) {
      await store.put(record(id, more))
    }
    expect(await store.deleteOfGrant({ issuer: 'people', model: 'AuthorizationCode', grantId: 'g' })).toBe(2)
    expect(await store.find(record('a'), after(1))).toBeUndefined()
    expect(await store.find(record('c'), after(1))).toBeDefined()
    expect(await store.find(record('d', { model: 'RefreshToken' }), after(1))).toBeDefined()
    expect(await store.find(record('e', { issuer: 'others' }), after(1))).toBeDefined()
    await store.delete(record('c'))
    expect(await store.find(record('c'), after(1))).toBeUndefined()
  })

  test('deletes expired records only', async () => {
    const [store] = await open()
    for (let i = 0; i < 20; i++) await store.put(record(`s${i}`, { expires: after(10) }))
    await store.put(record('live'))
    expect(await store.deleteExpired(after(10))).toBe(20)
    expect(await store.deleteExpired(after(10))).toBe(0)
    expect(await store.find(record('live'), after(10))).toBeDefined()
  })

  test("rejects text that can't be stored, and does not find it", async () => {
    const [store] = await open()
    await expect(store.put(record('a\0'))).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect(await store.find(record('a\0'), after(1))).toBeUndefined()
    expect(await store.consume(record('\ud800'), after(1))).toBe(false)
    expect(await store.findByUserCode({ ...record('a'), userCode: '\0' }, after(1))).toBeUndefined()
  })
})
