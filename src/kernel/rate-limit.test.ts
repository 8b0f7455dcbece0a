import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RateLimit } from '#kernel/rate-limit.ts'

describe('a rate limit', () => {
  it('never lets more calls through than the burst and the rate allow', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 600 }),
        fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 200 }),
        (burst, perMinute, pauses) => {
          let now = 0
          const limit = new RateLimit(10, () => new Date(now))
          let passed = 0
          for (const pause of pauses) {
            now += pause
            if (limit.take('a', { burst, perMinute }) === undefined) passed++
          }
          expect(passed).toBeLessThanOrEqual(burst + (now * perMinute) / 60_000 + 1e-6)
        },
      ),
    )
  })

  it('lets a call through after the seconds that it returned', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 600 }), (burst, perMinute) => {
        let now = 1e12
        const limit = new RateLimit(10, () => new Date(now))
        let wait: number | undefined
        for (let i = 0; i <= burst; i++) wait = limit.take('a', { burst, perMinute })
        expect(wait).toBeGreaterThan(0)
        now += (wait ?? 0) * 1000
        expect(limit.take('a', { burst, perMinute })).toBeUndefined()
      }),
    )
  })

  it('remembers a bounded number of callers, and does not block one when the clock is set back', () => {
    let now = 1e12
    const limit = new RateLimit(100, () => new Date(now))
    for (let i = 0; i < 10_000; i++) limit.take(`caller ${i}`, { burst: 1, perMinute: 1 })
    expect(limit.size).toBe(100)
    now -= 3_600_000
    expect(limit.take('caller 9999', { burst: 1, perMinute: 60 })).toBe(1)
  })
})
