import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeyedQueue } from '#kernel/keyed-queue.ts'

const pause = () => new Promise<void>((resolve) => setImmediate(resolve))
const refused = expect.objectContaining({ code: 'TOO_MANY_REQUESTS', retryAfter: 1 })

describe('KeyedQueue', () => {
  test.each([1, 2, 3])('runs at most %i pieces of work on a key at once, in their order', async (width) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('ann', 'bob'), { maxLength: 20 }), async (keys) => {
        const queue = new KeyedQueue({ width })
        const running: Record<string, number> = { ann: 0, bob: 0 }
        const started: Record<string, number[]> = { ann: [], bob: [] }
        const outcomes = keys.map((key, i) =>
          queue.run(key, async () => {
            started[key]?.push(i)
            running[key] = (running[key] ?? 0) + 1
            expect(running[key]).toBeLessThanOrEqual(width)
            await pause()
            running[key] = (running[key] ?? 0) - 1
            if (i % 3 === 0) throw new Error('no')
          }),
        )
        await Promise.allSettled(outcomes)
        for (const order of Object.values(started)) expect(order).toEqual(order.toSorted((a, b) => a - b))
        expect(started['ann']?.length).toBe(keys.filter((key) => key === 'ann').length)
        expect(queue.size).toBe(0)
      }),
      { numRuns: 30 },
    )
  })

  test('work on another key does not wait', async () => {
    const queue = new KeyedQueue()
    const blocked = Promise.withResolvers<void>()
    const first = queue.run('ann', () => blocked.promise)
    expect(await queue.run('bob', async () => 'done')).toBe('done')
    blocked.resolve()
    await first
  })

  test('work beyond the limit of a key is refused, and waiting work still gets its turn', async () => {
    const queue = new KeyedQueue({ maxPerKey: 2 })
    const blocked = Promise.withResolvers<void>()
    const first = queue.run('ann', () => blocked.promise)
    const second = queue.run('ann', async () => 'second')
    await expect(queue.run('ann', async () => 'third')).rejects.toEqual(refused)
    expect(await queue.run('bob', async () => 'other')).toBe('other')
    blocked.resolve()
    await first
    expect(await second).toBe('second')
    expect(await queue.run('ann', async () => 'later')).toBe('later')
  })

  test('work beyond the limit of all keys is refused, except for a part of running work', async () => {
    const queue = new KeyedQueue({ maxPending: 2, refuse: (reason) => new Error(reason) })
    const blocked = Promise.withResolvers<void>()
    const running = ['ann', 'bob'].map((key) => queue.run(key, () => blocked.promise))
    await expect(queue.run('alan', async () => 'no')).rejects.toThrow(
      '2 pieces of work run or wait, too many for another on "alan"',
    )
    expect(await queue.runWithin('alan', async () => 'part')).toBe('part')
    blocked.resolve()
    await Promise.all(running)
    expect(await queue.run('alan', async () => 'later')).toBe('later')
  })

  test('a part of running work does not count as pending', async () => {
    const queue = new KeyedQueue({ maxPending: 2 })
    const blocked = Promise.withResolvers<void>()
    const running = queue.run('group', () => queue.runWithin('user', () => blocked.promise))
    await expect(queue.run('other', async () => 'done')).resolves.toBe('done')
    blocked.resolve()
    await running
  })

  test('work that waits too long gives up and is not started later', async () => {
    const queue = new KeyedQueue({ waitMillis: 10 })
    const blocked = Promise.withResolvers<void>()
    const first = queue.run('ann', () => blocked.promise)
    let started = false
    const second = queue.run('ann', async () => {
      started = true
    })
    await expect(second).rejects.toEqual(refused)
    blocked.resolve()
    await first
    await pause()
    expect([started, queue.size]).toEqual([false, 0])
  })

  test('a turn ends only once', async () => {
    const queue = new KeyedQueue({ width: 2, maxPerKey: 2 })
    const leave = await queue.enter('ann')
    await queue.enter('ann')
    leave()
    leave()
    await queue.enter('ann')
    await expect(queue.enter('ann')).rejects.toEqual(refused)
  })
})
