import { expect, test } from 'vitest'
import { retryDelay } from './leased-delivery.ts'

test.each([
  [1, 500, 1000],
  [2, 1000, 2000],
  [5, 8000, 16_000],
  [9, 128_000, 256_000],
  [10, 150_000, 300_000],
  [1000, 150_000, 300_000],
])('after %i failures the wait is from %i to %i ms', (failures, least, most) => {
  expect(retryDelay(failures, undefined, 0)).toBe(least)
  expect(retryDelay(failures, undefined, 1)).toBe(most)
})

test('the rest that the receiver requests wins, up to an hour', () => {
  expect(retryDelay(1, 20_000, 1)).toBe(20_000)
  expect(retryDelay(5, 1000, 1)).toBe(16_000)
  expect(retryDelay(1, 10 ** 12, 1)).toBe(3600_000)
})
