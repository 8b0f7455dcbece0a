import { expect, test } from 'vitest'
import { PauseTooLong, RateBudget } from './rate-budget.ts'

const limits = (signal: AbortSignal = new AbortController().signal) => ({
  deadline: performance.now() + 60_000,
  signal,
})

test('after a pause one call goes first, and each success doubles how many may go', async () => {
  const budget = new RateBudget()
  budget.pause(0)
  let most = 0
  let underWay = 0
  const atOnce: number[] = []
  const call = () =>
    budget.run(limits(), async () => {
      most = Math.max(most, ++underWay)
      atOnce.push(underWay)
      await new Promise(setImmediate)
      underWay--
      budget.passed()
    })
  await Promise.all(Array.from({ length: 40 }, call))
  expect(atOnce[0]).toBe(1)
  expect(atOnce[1]).toBe(1)
  expect(most).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(32)
})

test.each(['while it waits', 'when its turn comes'])(
  'a call that ends %s leaves its turn to the next',
  async (when) => {
    const budget = new RateBudget()
    budget.pause(0)
    const first = Promise.withResolvers<string>()
    const ended = new AbortController()
    const running = budget.run(limits(), () => first.promise)
    const waiting = budget.run(limits(ended.signal), async () => 'never')
    const refused = expect(waiting).rejects.toThrow()
    const last = budget.run(limits(), async () => 'last')
    if (when === 'while it waits') {
      ended.abort()
      await refused
    }
    first.resolve('first')
    ended.abort()
    await refused
    expect(await Promise.all([running, last])).toEqual(['first', 'last'])
  },
)

test('a call that would wait beyond its deadline fails at once', async () => {
  const budget = new RateBudget()
  budget.pause(30_000)
  budget.pause(10)
  let sent = false
  const call = budget.run({ ...limits(), deadline: performance.now() + 1000 }, async () => {
    sent = true
  })
  await expect(call).rejects.toThrow(PauseTooLong)
  expect(sent).toBe(false)
})
