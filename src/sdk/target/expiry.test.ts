import { describe, expect, test } from 'vitest'
import { expiryTime, parseExpiresAfter, parseExpiresAt } from './expiry.ts'

const now = new Date('2026-01-31T12:00:00Z')

describe('expiresAfter', () => {
  test.each([
    ['8h', 8 * 3_600_000],
    [' 30d ', 30 * 86_400_000],
    ['P30D', 30 * 86_400_000],
    ['P1M', 28 * 86_400_000],
  ])('%s counts from the commit', (text, inMillis) => {
    const expiry = parseExpiresAfter(text)
    expect(expiry && expiryTime(expiry, now)).toEqual({ inMillis })
  })

  test.each(['', '0d', 'P', 'soon', '-8h', '2026-01-01'])('"%s" is not a length of time', (text) => {
    expect(parseExpiresAfter(text)).toBeUndefined()
  })

  test('100 years are enough', () => {
    const expiry = parseExpiresAfter('P101Y')
    expect(expiry && expiryTime(expiry, now)).toBeUndefined()
  })
})

describe('expiresAt', () => {
  test.each([
    ['2026-02-01', '2026-02-01T00:00:00.000Z'],
    ['2026-02-01T10:00:00Z', '2026-02-01T10:00:00.000Z'],
    ['2026-02-01T10:00:00+02:00', '2026-02-01T08:00:00.000Z'],
  ])('%s is a time', (text, at) => {
    const expiry = parseExpiresAt(text)
    expect(expiry && expiryTime(expiry, now)).toEqual({ at: new Date(at) })
  })

  test.each(['', '8h', 'tomorrow', '2026-13-01', '01.02.2026'])('"%s" is not a time', (text) => {
    expect(parseExpiresAt(text)).toBeUndefined()
  })

  test.each(['2026-01-31T12:00:00Z', '1999-01-01', '2226-01-01'])('%s is not in the next 100 years', (text) => {
    const expiry = parseExpiresAt(text)
    expect(expiry && expiryTime(expiry, now)).toBeUndefined()
  })
})
