import { expect, test } from 'vitest'
import { inParallel } from '#kernel/in-parallel.ts'

const tick = () => new Promise((resolve) => setImmediate(resolve))

test('keeps the order of the results and the width', async () => {
  let running = 0
  let most = 0
  const results = await inParallel([3, 1, 2, 5, 4], 2, async (n) => {
    most = Math.max(most, ++running)
    for (let i = 0; i < n; i++) await tick()
    running--
    return n * 10
  })
  expect([results, most]).toEqual([[30, 10, 20, 50, 40], 2])
})

test('after a failure no call is started, and no call is left running', async () => {
  const started: number[] = []
  const ended: number[] = []
  const work = inParallel([0, 1, 2, 3, 4], 2, async (n) => {
    started.push(n)
    if (n === 0) throw new Error('first')
    await tick()
    ended.push(n)
    throw new Error('second')
  })
  await expect(work).rejects.toThrow('first')
  expect([started, ended]).toEqual([[0, 1], [1]])
})
