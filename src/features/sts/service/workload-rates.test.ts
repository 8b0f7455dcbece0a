import { expect, test } from 'vitest'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { WorkloadRates } from './workload-rates.ts'

const rate = { burst: 10, perMinute: 30 }

/** Processes that share their rates, and how often they asked for them. */
function setUp(processes: number) {
  let now = 1e12
  const clock = () => new Date(now)
  const shared = new MemoryRateLimits(clock)
  let asked = 0
  const rateLimits: Pick<MemoryRateLimits, 'take'> = {
    take: (...call) => {
      asked++
      return shared.take(...call)
    },
  }
  const rates = Array.from({ length: processes }, () => new WorkloadRates(clock, rateLimits))
  return {
    asked: () => asked,
    pass: (seconds: number) => {
      now += seconds * 1000
    },
    /** How many of the calls continue, which go to one process after the other. */
    async call(calls: number): Promise<number> {
      let allowed = 0
      for (let i = 0; i < calls; i++) if ((await rates[i % processes]?.take('pod', rate)) === undefined) allowed++
      return allowed
    },
  }
}

test.each([1, 4])('a workload has the same rate with %i processes', async (processes) => {
  const { call, pass } = setUp(processes)
  expect(await call(40)).toBe(10)
  let allowed = 0
  for (let i = 0; i < 60; i++) {
    pass(2)
    allowed += await call(processes)
  }
  // A call of each process may be owed at the end.
  expect(allowed).toBeGreaterThanOrEqual(60)
  expect(allowed).toBeLessThanOrEqual(60 + processes)
})

test('a workload that comes back after a while costs no shared count', async () => {
  const { call, pass, asked } = setUp(1)
  for (let i = 0; i < 10; i++) {
    expect(await call(1)).toBe(1)
    pass(20)
  }
  expect(asked()).toBe(0)
})

test('a clock that is set back refuses no one', async () => {
  const { call, pass } = setUp(1)
  await call(1)
  pass(-86_400)
  expect(await call(11)).toBeGreaterThanOrEqual(10)
})

test('concurrent calls get no more than the burst', async () => {
  const clock = () => new Date(0)
  const rates = new WorkloadRates(clock, new MemoryRateLimits(clock))
  const waits = await Promise.all(Array.from({ length: 30 }, async () => await rates.take('pod', rate)))
  expect(waits.filter((wait) => wait === undefined)).toHaveLength(10)
})
