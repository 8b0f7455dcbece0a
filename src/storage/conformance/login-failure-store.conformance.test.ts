import { expect, test } from 'vitest'
import type { FailurePolicy } from '#storage/login-failure-store.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { openStores } from '#testing/stores.ts'

const start = Date.UTC(2030, 0, 1)
const after = (seconds: number): Date => new Date(start + seconds * 1000)

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
})
