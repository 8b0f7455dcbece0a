import { expect, test } from 'vitest'
import { WorkQueue } from '#kernel/work-queue.ts'

test('few at a time, in order, and the rest refused; a failure makes room as well', async () => {
  const queue = new WorkQueue(2, 3)
  const gates: (() => void)[] = []
  const started: number[] = []
  const work = (n: number) =>
    queue.run(async () => {
      started.push(n)
      await new Promise<void>((resolve) => gates.push(resolve))
      if (n === 0) throw new Error('failed')
      return n
    })
  const all = [0, 1, 2, 3, 4].map(work)
  const outcome = Promise.allSettled(all)
  await expect(work(5)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfter: 1 })
  expect(started).toEqual([0, 1])
  for (let done = 0; done < 5; done++) {
    gates[done]?.()
    await new Promise((resolve) => setImmediate(resolve))
    expect(started.length).toBe(Math.min(5, done + 3))
  }
  expect((await outcome).map(({ status }) => status)).toEqual(['rejected', ...Array(4).fill('fulfilled')])
  expect(started).toEqual([0, 1, 2, 3, 4])
})
