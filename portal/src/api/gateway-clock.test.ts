import { expect, test } from 'vitest'
import { aheadBy } from './gateway-clock.ts'

const at = (millis: number): string => new Date(millis).toUTCString()
const hour = 3_600_000

test('a browser with a wrong clock gets the difference; one that is about right gets none', () => {
  expect(aheadBy(at(10 * hour), 10 * hour, 10 * hour + 40)).toBe(0)
  expect(aheadBy(at(10 * hour), 13 * hour, 13 * hour)).toBe(500 - 3 * hour)
  expect(aheadBy(at(10 * hour), 9 * hour, 9 * hour)).toBe(hour + 500)
})

test('a slow answer is inaccurate, and one without a time is ignored', () => {
  expect(aheadBy(at(10 * hour), 10 * hour, 10 * hour + 30_000)).toBe(0)
  expect(aheadBy(null, 0, 0)).toBe(undefined)
  expect(aheadBy('soon', 0, 0)).toBe(undefined)
})
