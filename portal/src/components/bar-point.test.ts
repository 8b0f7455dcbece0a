import { expect, test } from 'vitest'
import { valueText } from './bar-point.ts'

test('no value is a dash, and 0 is a value', () => {
  const written = (value: number): string => `${value} h`
  expect([0, 2.5, null, undefined].map((value) => valueText(value, written))).toEqual(['0 h', '2.5 h', '–', '–'])
})
