import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SubjectQueue } from '#engine/workflow/subject-queue.ts'

const pause = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('SubjectQueue', () => {
  test('work on one subject never overlaps and keeps its order; letter case does not make another subject', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('ann', 'ANN', 'bob'), { maxLength: 20 }), async (subjects) => {
        const queue = new SubjectQueue()
        const running = new Set<string>()
        const done: Record<string, number[]> = { ann: [], bob: [] }
        await Promise.all(
          subjects.map((subject, i) =>
            queue.run(subject, async () => {
              const key = subject.toLowerCase()
              expect(running.has(key)).toBe(false)
              running.add(key)
              await pause()
              running.delete(key)
              done[key]?.push(i)
            }),
          ),
        )
        for (const order of Object.values(done)) expect(order).toEqual(order.toSorted((a, b) => a - b))
        expect(queue.size).toBe(0)
      }),
      { numRuns: 30 },
    )
  })

  test('another subject does not wait', async () => {
    const queue = new SubjectQueue()
    const blocked = Promise.withResolvers<void>()
    const first = queue.run('ann', () => blocked.promise)
    expect(await queue.run('bob', async () => 'done')).toBe('done')
    blocked.resolve()
    await first
  })

  test('a failure passes the turn on', async () => {
    const queue = new SubjectQueue()
    const failing = queue.run('ann', async () => {
      await pause()
      throw new Error('no')
    })
    const second = queue.run('ann', async () => 'done')
    await expect(failing).rejects.toThrow('no')
    expect(await second).toBe('done')
    expect(queue.size).toBe(0)
  })

  test('more waiters than the limit are refused, and the others still get their turn', async () => {
    const queue = new SubjectQueue({ perSubject: 1 })
    const blocked = Promise.withResolvers<void>()
    const first = queue.run('ann', () => blocked.promise)
    const second = queue.run('ann', async () => 'second')
    await expect(queue.run('ann', async () => 'third')).rejects.toMatchObject({
      code: 'TOO_MANY_REQUESTS',
      retryAfter: 5,
    })
    blocked.resolve()
    await first
    expect(await second).toBe('second')
  })

  test('the total of waiters is limited over all subjects', async () => {
    const queue = new SubjectQueue({ total: 1 })
    const blocked = Promise.withResolvers<void>()
    const held = ['ann', 'bob'].map((subject) => queue.run(subject, () => blocked.promise))
    const waiting = queue.run('ann', async () => 'waited')
    await expect(queue.run('bob', async () => 'no')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
    blocked.resolve()
    await Promise.all(held)
    expect(await waiting).toBe('waited')
  })

  test('a run that waits too long gives up, and is not started later', async () => {
    const queue = new SubjectQueue({ waitMillis: 10 })
    const blocked = Promise.withResolvers<void>()
    const first = queue.run('ann', () => blocked.promise)
    let started = false
    const second = queue.run('ann', async () => {
      started = true
    })
    await expect(second).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
    blocked.resolve()
    await first
    await pause()
    expect(started).toBe(false)
    expect(queue.size).toBe(0)
  })
})
