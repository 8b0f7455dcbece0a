import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { defaultRetries, retryDelay } from './retry-policy.ts'

const unreachable = new GatewayError('TARGET_UNREACHABLE', 'down')

describe('retryDelay', () => {
  test('grows with each attempt, is random, and ends', () => {
    const delays = [1, 2, 3, 4, 5, 6, 7].map((attempt) => retryDelay(unreachable, attempt, defaultRetries, () => 1))
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000])
    expect(retryDelay(unreachable, 3, defaultRetries, () => 0)).toBe(2_000)
    expect(retryDelay(unreachable, 8)).toBeUndefined()
  })

  test('is never longer than the maximum, nor shorter than the target requests', () => {
    const limits = { ...defaultRetries, attempts: 1_000 }
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
        const delay = retryDelay(unreachable, attempt, limits, () => random)
        expect(delay).toBeGreaterThanOrEqual(500)
        expect(delay).toBeLessThanOrEqual(limits.mostMillis)
      }),
    )
    const asked = (retryAfter: number) =>
      retryDelay(new GatewayError('TOO_MANY_REQUESTS', 'slow down', { retryAfter }), 1)
    expect(asked(30)).toBe(30_000)
    expect(asked(1e9)).toBe(3_600_000)
  })

  test.each([
    'BAD_REQUEST',
    'CONFLICT',
    'NOT_SUPPORTED',
    'WORKFLOW_FAILED',
    'TARGET_FAILED',
    'NOT_FOUND',
    'NO_APPROVERS',
  ] as const)('%s is not retried', (code) => {
    expect(retryDelay(new GatewayError(code, 'no'), 1)).toBeUndefined()
  })

  test('an unknown error is retried a few times', () => {
    expect(retryDelay(new TypeError('x'), 2)).toBeDefined()
    expect(retryDelay(new TypeError('x'), 3)).toBeUndefined()
    expect(retryDelay('thrown text', 1)).toBeDefined()
  })
})
