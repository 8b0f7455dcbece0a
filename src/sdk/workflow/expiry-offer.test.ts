import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chooseExpiry, type ExpiryOffer, parseExpiry } from './expiry-offer.ts'

const now = new Date('2026-01-31T12:00:00Z')
const day = 86_400_000
const offer: ExpiryOffer = { required: false, longest: { months: 0, millis: 30 * day } }

describe('an expiry date', () => {
  test.each([
    ['2026-02-01', '2026-02-01T23:59:59.000Z'],
    ['2026-02-01T10:00', '2026-02-01T10:00:00.000Z'],
    ['2026-02-01T10:00:00.5+02:00', '2026-02-01T08:00:00.500Z'],
    ['2028-02-29', '2028-02-29T23:59:59.000Z'],
  ])('%s is a time', (text, at) => {
    expect(parseExpiry(text)).toEqual(new Date(at))
  })

  test.each([
    '',
    '8h',
    'tomorrow',
    '2026-13-01',
    '2026-02-31',
    '2026-02-30T10:00:00Z',
    '01.02.2026',
    '2026-02-01T25:00Z',
    '2026-02-01 ',
    '+002026-02-01',
  ])('"%s" is not a time', (text) => {
    expect(parseExpiry(text)).toBeUndefined()
  })
})

describe('choosing', () => {
  const outcome = (text: string, offered: ExpiryOffer | undefined = offer) => {
    const chosen = chooseExpiry(text, offered, now)
    return 'refusal' in chosen ? chosen.refusal : chosen.ends?.toISOString()
  }

  test('accepts times within the offer, including its end', () => {
    expect(outcome(' 2026-02-01 ')).toBe('2026-02-01T23:59:59.000Z')
    expect(outcome('2026-03-02T12:00:00Z')).toBe('2026-03-02T12:00:00.000Z')
    expect(outcome('2026-03-02T12:00:01Z')).toBe('End date is later than allowed')
  })

  test('months follow the calendar', () => {
    const month = { required: false, longest: { months: 1, millis: 0 } }
    expect(outcome('2026-02-28T12:00:00Z', month)).toBe('2026-02-28T12:00:00.000Z')
    expect(outcome('2026-02-28T12:00:01Z', month)).toBe('End date is later than allowed')
  })

  test('without a limit 100 years are enough', () => {
    expect(outcome('2125-01-01', { required: false })).toBe('2125-01-01T23:59:59.000Z')
    expect(outcome('2127-01-01', { required: false })).toBe('End date is later than allowed')
  })

  test('an empty one never expires, unless an expiry date is required', () => {
    expect(outcome('  ')).toBeUndefined()
    expect(outcome('', { required: true })).toBe('End date is required')
    expect(chooseExpiry('', undefined, now)).toEqual({ ends: undefined })
  })

  test('a past, invalid or unavailable expiry is rejected', () => {
    expect(outcome('2026-01-31T12:00:00Z')).toBe('End date is not in the future')
    expect(outcome('2026-01-30')).toBe('End date is not in the future')
    expect(outcome('soon')).toBe('End date is not a date or time')
    expect(chooseExpiry('2026-02-01', undefined, now)).toEqual({ refusal: 'End date cannot be chosen here' })
  })

  test('nothing beyond the offer is ever accepted', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.date({ noInvalidDate: true }).map((at) => at.toISOString()),
          fc.integer({ min: -60 * day, max: 60 * day }).map((off) => new Date(now.getTime() + off).toISOString()),
        ),
        (text) => {
          const chosen = chooseExpiry(text, { ...offer, required: true }, now)
          if ('refusal' in chosen) return true
          const millis = (chosen.ends?.getTime() ?? Number.POSITIVE_INFINITY) - now.getTime()
          return millis > 0 && millis <= 30 * day
        },
      ),
    )
  })
})
