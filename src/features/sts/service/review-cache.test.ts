import { describe, expect, it } from 'vitest'
import { ReviewCache, reviewMillis } from './review-cache.ts'

const farAway = () => new Date(1e15)

describe('a review cache', () => {
  it('limits concurrent queries, and answers all of a burst', async () => {
    const cache = new ReviewCache<number>({ clock: () => new Date(0), atOnce: 3 })
    let running = 0
    let most = 0
    const question = (n: number) => async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 1))
      running--
      return n
    }
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => cache.ask(`${n}`, question(n), farAway)))
    expect([answers, most]).toEqual([Array.from({ length: 50 }, (_, n) => n), 3])
  })

  it('rejects when too many wait, and continues after failures', async () => {
    const cache = new ReviewCache<number>({ clock: () => new Date(0), atOnce: 1, waiting: 1 })
    let fail = (_: Error): void => {}
    const stuck = cache.ask('a', () => new Promise((_, reject) => (fail = reject)), farAway)
    const next = cache.ask('b', async () => 2, farAway)
    expect(() => cache.ask('c', async () => 3, farAway)).toThrowError(/more than 1/)
    fail(new Error('away'))
    await expect(stuck).rejects.toThrow('away')
    expect(await next).toBe(2)
    expect(await cache.ask('a', async () => 1, farAway)).toBe(1)
  })

  it('caches no answer longer than ten seconds or its own end, and some not at all', async () => {
    let now = 0
    const cache = new ReviewCache<number>({ clock: () => new Date(now) })
    await cache.ask('long', async () => 1, farAway)
    await cache.ask(
      'short',
      async () => 1,
      () => new Date(500),
    )
    await cache.ask(
      'none',
      async () => 1,
      () => undefined,
    )
    expect([cache.known('long'), cache.known('short'), cache.known('none')]).toEqual([1, 1, undefined])
    now = 500
    expect([cache.known('long'), cache.known('short')]).toEqual([1, undefined])
    now = reviewMillis
    expect(cache.known('long')).toBeUndefined()
  })
})
