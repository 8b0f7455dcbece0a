import { expect, test } from 'vitest'
import { isEndingSoon } from './session.ts'

test('warns in the configured last minutes of a session', () => {
  expect([6, 5, 0].map((minutes) => isEndingSoon(minutes, 60, 5))).toEqual([false, true, true])
  expect(isEndingSoon(-1, 0, 5)).toBe(false)
})

test('a configured time longer than the session warns in its last quarter', () => {
  expect([8, 3, 2, 0].map((minutes) => isEndingSoon(minutes, 8, 30))).toEqual([false, false, true, true])
  expect([3, 2, 1].map((minutes) => isEndingSoon(minutes, 3, 30))).toEqual([false, false, true])
})
