import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isoTime, parseTime } from '#kernel/time.ts'
import { addSpan, parseTimeSpan, spanMillis, sumOfSpans } from './time.ts'

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
    '"%s" is not a time span',
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

  test('two months from the start differ from one month twice', () => {
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

  test('rejects a span of more than 100 years', () => {
    const start = new Date('2026-01-01T00:00:00Z')
    expect(spanMillis(start, { months: 1200, millis: 0 })).toBeGreaterThan(0)
    expect(spanMillis(start, { months: 9999 * 12 + 9999, millis: 0 })).toBeUndefined()
    expect(spanMillis(start, { months: 0, millis: 1e18 })).toBeUndefined()
  })
})

const now = new Date('2030-01-02T03:04:05Z')

test.each([
  ['90s', '2030-01-02T03:02:35.000Z'],
  ['15m', '2030-01-02T02:49:05.000Z'],
  ['1h', '2030-01-02T02:04:05.000Z'],
  ['7d', '2029-12-26T03:04:05.000Z'],
  ['2030-01-01', '2030-01-01T00:00:00.000Z'],
  ['2030-01-01T12:00:00.5Z', '2030-01-01T12:00:00.500Z'],
  ['2030-01-01T12:00+02:00', '2030-01-01T10:00:00.000Z'],
])('%s is a time', (text, iso) => {
  expect(parseTime(text, now)?.toISOString()).toBe(iso)
})

test.each(['', '1', '1w', '-1h', '1h ', '9999999h', 'yesterday', '2030', '2030-13-01', '2030-01-01T99:99:99Z'])(
  '"%s" is not a time',
  (text) => {
    expect(parseTime(text, now)).toBeUndefined()
  },
)

test('equals Date for any time', () => {
  fc.assert(
    fc.property(fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 }), (millis) => {
      expect(isoTime(millis)).toBe(new Date(millis).toISOString())
    }),
  )
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (millis) => {
      expect(isoTime(millis)).toBe(new Date(millis).toISOString())
    }),
  )
})

test.each([0, 999, 86_399_999, 86_400_000, 951_782_399_999, 253_402_300_799_999, 253_402_300_800_000, -1])(
  'at the edge %d',
  (millis) => {
    expect(isoTime(millis)).toBe(new Date(millis).toISOString())
  },
)

test('rejects what is not a time', () => {
  expect(() => isoTime(Number.NaN)).toThrow(RangeError)
})
