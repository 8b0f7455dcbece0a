import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import type { StoredEvent } from './event-store.ts'

const at = (second: number): Date => new Date(Date.UTC(2030, 0, 1) + second * 1000)

const event = (id: string, more: Partial<StoredEvent> = {}): StoredEvent => ({
  id,
  time: at(0),
  key: 'scim-events',
  claims: { jti: id, events: { 'urn:x': { attributes: ['é\u{1f600}', 'a\0b\ud800'] } } },
  ...more,
})

const ids = (events: readonly StoredEvent[]): string[] => events.map(({ id }) => id)
const lease = (from: number, seconds = 30) => ({ now: at(from), until: at(from + seconds) })

async function storageAt(url: string): Promise<Storage> {
  const storage = openStorage({ url, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  await storage.ready()
  return storage
}

/** The same database, opened by two processes. */
const twoStores = async (url: string) => [(await storageAt(url)).events, (await storageAt(url)).events] as const

onEachDatabase('events', (freshUrl) => {
  const open = async () => twoStores(await freshUrl())

  test('events of a stream are read oldest first, with all their fields', async () => {
    const [store, other] = await open()
    await store.append('a', [event('1'), event('2')])
    await other.append('b', [event('3')])
    await other.append('a', [event('4')])
    await store.append('a', [])
    expect(await store.read('a', 10)).toEqual([event('1'), event('2'), event('4')])
    expect(ids(await store.read('a', 2))).toEqual(['1', '2'])
    expect(ids(await store.read('b', 10))).toEqual(['3'])
    expect(await store.read('c', 10)).toEqual([])
    expect(await store.names()).toEqual(['a', 'b'])
    expect(await store.read('a\0', 10)).toEqual([])
  })

  test('all events are appended, or none', async () => {
    const [store] = await open()
    await store.append('a', [event('1')])
    await expect(store.append('a', [event('2'), event('1')])).rejects.toMatchObject({ code: 'CONFLICT' })
    await store.append('a', [event('3')])
    expect(ids(await store.read('a', 10))).toEqual(['1', '3'])
  })

  test('only the given events of the stream are removed', async () => {
    const [store] = await open()
    await store.append(
      'a',
      Array.from({ length: 70 }, (_, i) => event(`a${i}`)),
    )
    await store.append('b', [event('b1')])
    expect(await store.remove('a', ['a0', 'a0', 'b1', 'unknown', 'x\0'])).toBe(1)
    expect(ids(await store.read('b', 10))).toEqual(['b1'])
    expect(
      await store.remove(
        'a',
        Array.from({ length: 69 }, (_, i) => `a${i}`),
      ),
    ).toBe(68)
    expect(ids(await store.read('a', 10))).toEqual(['a69'])
    expect(await store.remove('a', [])).toBe(0)
  })

  test('a reader never sees a later event before an earlier one', async () => {
    const [store, other] = await open()
    const seen: number[] = []
    let writing = true
    const reader = (async () => {
      while (writing) {
        const found = await store.read('a', 1000)
        for (const { claims } of found.slice(seen.length)) seen.push(Number(claims['n']))
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    })()
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        (i % 2 === 0 ? store : other).append('a', [event(`${i}`, { claims: { n: i } })]),
      ),
    )
    writing = false
    await reader
    const final = (await store.read('a', 1000)).map(({ claims }) => Number(claims['n']))
    expect(final).toHaveLength(100)
    expect(seen).toEqual(final.slice(0, seen.length))
  })

  test('trim drops the oldest events beyond the limit, and those that are too old', async () => {
    const [store] = await open()
    expect(await store.trim('a', { keep: 5, since: at(0) })).toEqual({ dropped: 0 })
    await store.append(
      'a',
      Array.from({ length: 10 }, (_, i) => event(`${i}`, { time: at(i) })),
    )
    expect(await store.trim('a', { keep: 10, since: at(0) })).toEqual({ dropped: 0, oldest: at(0) })
    expect(await store.trim('a', { keep: 4, since: at(0) })).toEqual({ dropped: 6, oldest: at(6) })
    expect(await store.trim('a', { keep: 4, since: at(8) })).toEqual({ dropped: 2, oldest: at(8) })
    await store.remove('a', ['8'])
    expect(await store.trim('a', { keep: 1, since: at(0) })).toEqual({ dropped: 0, oldest: at(9) })
    expect(await store.trim('a', { keep: 1, since: at(20) })).toEqual({ dropped: 1 })
  })

  test('one owner delivers at a time, until it releases the claim or the claim expires', async () => {
    const [one, two] = await open()
    expect(await one.claim('a', 'one', lease(0))).toBeUndefined()
    await one.append('a', [event('1')])
    expect(await one.claim('a', 'one', lease(0))).toEqual({ failures: 0 })
    expect(await two.claim('a', 'two', lease(1))).toBeUndefined()
    expect(await one.claim('a', 'one', lease(20))).toEqual({ failures: 0 })
    expect(await two.claim('a', 'two', lease(40))).toBeUndefined()
    expect(await two.claim('a', 'two', lease(50))).toEqual({ failures: 0 })
    expect(await one.claim('a', 'one', lease(51))).toBeUndefined()
    await one.release('a', 'one', { failures: 7 })
    expect(await one.claim('a', 'one', lease(52))).toBeUndefined()
    await two.release('a', 'two', { failures: 2, retryAt: at(60) })
    expect(await one.claim('a', 'one', lease(59))).toBeUndefined()
    expect(await one.claim('a', 'one', lease(60))).toEqual({ failures: 2 })
  })

  test('one of several concurrent claims succeeds', async () => {
    const stores = await open()
    await stores[0].append('a', [event('1')])
    const turns = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2 === 0 ? 0 : 1].claim('a', `owner-${i}`, lease(0))),
    )
    expect(turns.filter((turn) => turn !== undefined)).toHaveLength(1)
  })
})
