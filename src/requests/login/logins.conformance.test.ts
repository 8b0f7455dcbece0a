import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import type { FailurePolicy } from './login-failure-store.ts'
import { type Login, loginsPerBrowser } from './login-store.ts'

const start = Date.UTC(2030, 0, 1)
const after = (seconds: number): Date => new Date(start + seconds * 1000)

const login = (id: string, more: Partial<Login> = {}): Login => ({
  id,
  browser: 'browser-hash',
  host: 'portal.test',
  data: 'g1.sealed',
  version: 0,
  created: after(0),
  expires: after(600),
  ...more,
})

onEachDatabase('logins', (freshUrl) => {
  const open = async () => {
    const { one, two } = await openStores(await freshUrl())
    return [one.logins, two.logins] as const
  }

  const key = { id: 'a', browser: 'browser-hash', host: 'portal.test' }

  test('finds a login by its browser and host until it expires', async () => {
    const [store, other] = await open()
    await store.create(login('a'))
    expect(await other.find(key, after(599))).toEqual(login('a'))
    expect(await store.find({ ...key, browser: 'another' }, after(1))).toBeUndefined()
    expect(await store.find({ ...key, host: 'other.test' }, after(1))).toBeUndefined()
    expect(await store.find({ ...key, id: 'A' }, after(1))).toBeUndefined()
    expect(await store.find({ ...key, id: '\0' }, after(1))).toBeUndefined()
    expect(await store.find(key, after(600))).toBeUndefined()
    expect([await store.knows('browser-hash', after(1)), await store.knows('another', after(1))]).toEqual([true, false])
    expect(await store.knows('browser-hash', after(600))).toBe(false)
  })

  test('rejects an id that exists', async () => {
    const [store] = await open()
    await store.create(login('a'))
    await expect(store.create(login('a'))).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('only the first of several processes takes a step', async () => {
    const stores = await open()
    await stores[0].create(login('a'))
    const taken = await Promise.all(
      Array.from({ length: 10 }, (_, i) => (stores[i % 2] ?? stores[0]).advance('a', 0, `data-${i}`, after(1))),
    )
    expect(taken.filter(Boolean)).toHaveLength(1)
    const found = await stores[1].find(key, after(1))
    expect([found?.version, found?.data]).toEqual([1, `data-${taken.indexOf(true)}`])
    expect(await stores[0].finish('a', 0, after(1))).toBe(false)
    const finished = await Promise.all([stores[0].finish('a', 1, after(1)), stores[1].finish('a', 1, after(1))])
    expect(finished.sort()).toEqual([false, true])
    expect(await stores[0].find(key, after(1))).toBeUndefined()
    expect(await stores[0].advance('a', 2, 'late', after(1))).toBe(false)
  })

  test('rejects steps of an expired login', async () => {
    const [store] = await open()
    await store.create(login('a'))
    expect(await store.advance('a', 0, 'x', after(600))).toBe(false)
    expect(await store.finish('a', 0, after(600))).toBe(false)
    expect(await store.deleteExpired(after(599))).toBe(0)
    expect(await store.deleteExpired(after(600))).toBe(1)
  })

  test('keeps the latest logins of a browser, up to the limit', async () => {
    const [store] = await open()
    await store.create(login('of-another', { browser: 'another' }))
    for (let i = 0; i <= loginsPerBrowser; i++) await store.create(login(`l${i}`, { created: after(i) }))
    expect(await store.find({ ...key, id: 'l0' }, after(30))).toBeUndefined()
    expect(await store.find({ ...key, id: 'l1' }, after(30))).toBeDefined()
    expect(await store.find({ ...key, id: `l${loginsPerBrowser}` }, after(30))).toBeDefined()
    expect(await store.find({ ...key, id: 'of-another', browser: 'another' }, after(30))).toBeDefined()
  })
})

/** Free twice, then locked for a minute; forgotten after ten. */
const policy: FailurePolicy = {
  lockMillis: (failures) => (failures < 3 ? 0 : 60_000),
  forgetMillis: 600_000,
}

onEachDatabase('failed logins', (freshUrl) => {
  const open = async () => {
    const { one, two } = await openStores(await freshUrl())
    return [one.loginFailures, two.loginFailures] as const
  }

  test('counts failures and locks the key after too many', async () => {
    const [store, other] = await open()
    expect(await store.count('a', policy, after(0))).toEqual({ failures: 1, lockedUntil: after(0), refused: false })
    expect(await other.count('a', policy, after(1))).toMatchObject({ failures: 2, refused: false })
    expect(await store.count('a', policy, after(2))).toEqual({ failures: 3, lockedUntil: after(62), refused: false })
    expect(await other.count('a', policy, after(3))).toEqual({ failures: 3, lockedUntil: after(62), refused: true })
    expect(await store.count('b', policy, after(3))).toMatchObject({ failures: 1 })
    expect(await store.count('a', policy, after(62))).toMatchObject({ failures: 4, refused: false })
  })

  test('a clock that is set back locks no key, and starts a lock again', async () => {
    const [store, other] = await open()
    const later = 2 * 86_400
    await store.count('free', policy, after(later))
    for (let i = 0; i < 3; i++) await store.count('locked', policy, after(later))
    expect(await other.count('free', policy, after(0))).toMatchObject({ failures: 2, refused: false })
    // Of a chain with other limits.
    const lenient = { ...policy, lockMillis: () => 0 }
    expect(await other.count('locked', lenient, after(0))).toEqual({
      failures: 3,
      lockedUntil: after(60),
      refused: true,
    })
    expect(await store.count('locked', policy, after(59))).toMatchObject({ lockedUntil: after(60), refused: true })
    expect(await store.count('locked', policy, after(60))).toMatchObject({ failures: 4, refused: false })
  })

  test('counts concurrent attempts one by one', async () => {
    const stores = await open()
    const tries = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (stores[i % 2] ?? stores[0]).count('a', policy, after(0))),
    )
    expect(tries.filter(({ refused }) => !refused)).toHaveLength(3)
  })

  test('clears all failures of a key, or forgives one', async () => {
    const [store] = await open()
    await store.count('a', policy, after(0))
    await store.count('a', policy, after(0))
    await store.forgive('a')
    expect(await store.count('a', policy, after(1))).toMatchObject({ failures: 2 })
    await store.clear('a')
    expect(await store.count('a', policy, after(1))).toMatchObject({ failures: 1 })
    await store.forgive('unknown')
  })

  test('forgets failures after a while', async () => {
    const [store] = await open()
    await store.count('a', policy, after(0))
    await store.count('a', policy, after(599))
    expect(await store.deleteForgotten(after(1198))).toBe(0)
    expect(await store.count('a', policy, after(1199))).toMatchObject({ failures: 1 })
    expect(await store.deleteForgotten(after(1799))).toBe(1)
  })

  test('a flood of keys does not grow the table without end, and ends no lock', async () => {
    const [store, other] = await open()
    for (let i = 0; i < 3; i++) await store.count('locked', policy, after(0))
    for (let i = 0; i < 20; i++) await store.count(`flood ${i}`, policy, after(1))
    expect(await other.deleteForgotten(after(2), 5)).toBe(16)
    expect(await store.count('locked', policy, after(2))).toMatchObject({ failures: 3, refused: true })
    expect(await store.deleteForgotten(after(86_400))).toBe(5)
  })
})
