import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isoTime } from '#kernel/iso-time.ts'

test('is what Date says of any moment', () => {
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

test('refuses what is no moment', () => {
  expect(() => isoTime(Number.NaN)).toThrow(RangeError)
})
