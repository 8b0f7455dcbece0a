import { expect, test } from 'vitest'
import { aheadBy } from './gateway-clock.ts'

const at = (millis: number): string => new Date(millis).toUTCString()
const hour = 3_600_000

test('a browser whose clock is off is told how far; one that is about right is left alone', () => {
  expect(aheadBy(at(10 * hour), 10 * hour, 10 * hour + 40)).toBe(0)
  expect(aheadBy(at(10 * hour), 13 * hour, 13 * hour)).toBe(500 - 3 * hour)
  expect(aheadBy(at(10 * hour), 9 * hour, 9 * hour)).toBe(hour + 500)
})

test('an answer that took long says little, and one without a time says nothing', () => {
  expect(aheadBy(at(10 * hour), 10 * hour, 10 * hour + 30_000)).toBe(0)
  expect(aheadBy(null, 0, 0)).toBe(undefined)
  expect(aheadBy('soon', 0, 0)).toBe(undefined)
})
