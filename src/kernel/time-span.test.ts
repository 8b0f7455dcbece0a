import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addSpan, parseTimeSpan, spanMillis, sumOfSpans } from './time-span.ts'

const hour = 3_600_000

describe('parsing', () => {
  test.each([
    ['90s', 0, 90_000],
    ['15m', 0, 900_000],
    ['8h', 0, 8 * hour],
    ['30d', 0, 30 * 24 * hour],
    ['2w', 0, 14 * 24 * hour],
    ['P30D', 0, 30 * 24 * hour],
    ['PT8H', 0, 8 * hour],
    ['P2W', 0, 14 * 24 * hour],
    ['P1Y6M', 18, 0],
    ['P1M1DT1H1M1S', 1, 25 * hour + 61_000],
  ])('%s', (text, months, millis) => {
    expect(parseTimeSpan(text)).toEqual({ months, millis })
  })

  test.each(['', 'P', 'PT', 'P1DT', '8', 'h', '-8h', '8 h', '1.5h', '8H', 'P1H', 'PT1D', '9999999d', 'P30D '])(
    '"%s" is none',
    (text) => {
      expect(parseTimeSpan(text)).toBeUndefined()
    },
  )
})

describe('adding', () => {
  test.each([
    ['2026-01-31T10:00:00Z', 'P1M', '2026-02-28T10:00:00.000Z'],
    ['2028-01-31T10:00:00Z', 'P1M', '2028-02-29T10:00:00.000Z'],
    ['2028-02-29T00:00:00Z', 'P1Y', '2029-02-28T00:00:00.000Z'],
    ['2026-12-15T00:00:00Z', 'P1M', '2027-01-15T00:00:00.000Z'],
    ['2026-03-01T00:00:00Z', '30d', '2026-03-31T00:00:00.000Z'],
  ])('%s and %s', (start, span, end) => {
    expect(addSpan(new Date(start), parseTimeSpan(span) ?? { months: 0, millis: 0 })?.toISOString()).toBe(end)
  })

  test('two months from the start are not one month twice', () => {
    const month = { months: 1, millis: 0 }
    const start = new Date('2026-01-31T00:00:00Z')
    expect(addSpan(start, sumOfSpans([month, month]))?.toISOString()).toBe('2026-03-31T00:00:00.000Z')
  })

  test('months keep the time of day and the order of times', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('1990-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
        fc.integer({ min: 1, max: 1200 }),
        (start, months) => {
          const end = addSpan(start, { months, millis: 0 })
          expect(end?.toISOString().slice(11)).toBe(start.toISOString().slice(11))
          const between = addSpan(start, { months: months - 1, millis: 0 })
          expect(between?.getTime()).toBeLessThan(end?.getTime() ?? 0)
        },
      ),
    )
  })

  test('more than 100 years is no span', () => {
    const start = new Date('2026-01-01T00:00:00Z')
    expect(spanMillis(start, { months: 1200, millis: 0 })).toBeGreaterThan(0)
    expect(spanMillis(start, { months: 9999 * 12 + 9999, millis: 0 })).toBeUndefined()
    expect(spanMillis(start, { months: 0, millis: 1e18 })).toBeUndefined()
  })
})
