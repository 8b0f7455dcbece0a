import { expect, test } from 'vitest'
import { highestValue, roundTicks, valueText } from './bar-point.ts'

test('no value is a dash, and 0 is a value', () => {
  const written = (value: number): string => `${value} h`
  expect([0, 2.5, null, undefined].map((value) => valueText(value, written))).toEqual(['0 h', '2.5 h', '–', '–'])
})

test('ticks are even and round, and end above the highest value', () => {
  expect(roundTicks(7, true)).toEqual([0, 2, 4, 6, 8])
  expect(roundTicks(100, true)).toEqual([0, 50, 100])
  expect(roundTicks(1, true)).toEqual([0, 1])
  expect(roundTicks(0, true)).toEqual([0, 1])
  expect(roundTicks(1.5, false)).toEqual([0, 0.5, 1, 1.5])
})

test('stacked values add up to the length of a bar', () => {
  const data = [
    { label: 'a', x: 3, y: 4 },
    { label: 'b', x: 5, y: null },
  ]
  expect([true, false].map((isStacked) => highestValue(data, ['x', 'y'], isStacked))).toEqual([7, 5])
})
