import { expect, test } from 'vitest'
import { median, percentile } from './median.ts'

test('the median does not depend on the order', () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([7])).toBe(7)
  expect(median([])).toBe(0)
})

test('a percentile is one of the values', () => {
  const values = Array.from({ length: 200 }, (_, n) => n)
  expect(percentile(values, 0.99)).toBe(198)
  expect(percentile(values, 1)).toBe(199)
})
