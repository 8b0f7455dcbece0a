import { describe, expect, test } from 'vitest'
import { fieldValue } from '../../components/field-time.ts'
import { endFieldType, endLimits, endPresets, endProblem, endTime } from './end-field.ts'

const day = 86_400
const now = new Date(2026, 2, 1, 12, 34).getTime()
const offer = { required: false, longestSeconds: 30 * day }

test('a day is chosen, or a time if days are too long', () => {
  expect(endFieldType({ required: true })).toBe('date')
  expect(endFieldType({ required: true, longestSeconds: 2 * day })).toBe('date')
  expect(endFieldType({ required: true, longestSeconds: 8 * 3600 })).toBe('datetime-local')
})

test('usual durations are offered up to the longest one, and make it a field for times', () => {
  const counts = (seconds?: number) =>
    endPresets({ required: true, ...(seconds === undefined ? {} : { longestSeconds: seconds }) }).map(
      ({ millis }) => millis / 1000,
    )
  expect(counts()).toEqual([4 * 3600, day, 30 * day])
  expect(counts(8 * 3600)).toEqual([4 * 3600])
  expect(counts(3600)).toEqual([])
  const value = fieldValue(new Date(now + 30 * day * 1000))
  expect(endFieldType(offer, value)).toBe('datetime-local')
  expect(endLimits(offer, now, value)).toEqual({ min: '2026-03-01T12:34', max: value })
  expect(endProblem(value, offer, now)).toBeUndefined()
})

test("a day is valid to its end, in the user's time zone", () => {
  expect(endTime('2026-03-05')).toEqual(new Date(2026, 2, 5, 23, 59, 59))
  expect(endTime('2026-03-05T10:00')).toEqual(new Date(2026, 2, 5, 10))
  expect(endTime('')).toBeUndefined()
})

describe('limits', () => {
  test('are from today to the last whole day', () => {
    expect(endLimits({ required: true }, now)).toEqual({ min: '2026-03-01' })
    expect(endLimits(offer, now)).toEqual({ min: '2026-03-01', max: '2026-03-30' })
    const lastSecond = new Date(2026, 2, 1, 23, 59, 59).getTime()
    expect(endLimits(offer, lastSecond)).toMatchObject({ max: '2026-03-31' })
  })

  test('are minutes if times are chosen', () => {
    expect(endLimits({ required: true, longestSeconds: 8 * 3600 }, now)).toEqual({
      min: '2026-03-01T12:34',
      max: '2026-03-01T20:34',
    })
  })

  test.each([2, 3, 30, 90, 366])('of %d days are valid themselves', (days) => {
    const within = { required: true, longestSeconds: days * day }
    for (let hour = 0; hour < 48; hour++) {
      const at = now + hour * 3_600_000
      const { min, max = '' } = endLimits(within, at)
      expect([endProblem(min, within, at), endProblem(max, within, at)]).toEqual([undefined, undefined])
    }
  })
})

describe('of access that the user has', () => {
  const hours = 3_600_000
  const current = now + 10 * hours

  test('presets count from its end', () => {
    const long = { required: true, longestSeconds: 30 * day }
    expect(endPresets(long, now, current).map(({ millis }) => millis / 1000)).toEqual([4 * 3600, day])
    expect(endPresets({ required: true, longestSeconds: 12 * 3600 }, now, current)).toEqual([])
  })

  test('the minimum is the first time after it', () => {
    expect(endLimits(offer, now, '', current)).toMatchObject({ min: '2026-03-01' })
    const wholeDay = new Date(2026, 2, 4, 23, 59, 59).getTime()
    const { min } = endLimits(offer, now, '', wholeDay)
    expect(min).toBe('2026-03-05')
    expect(endProblem(min, offer, now, wholeDay)).toBeUndefined()
    expect(endProblem('2026-03-04', offer, now, wholeDay)).toBe('cart.endNotLater')
    const time = { required: true, longestSeconds: 24 * 3600 }
    expect(endLimits(time, now, '', current)).toMatchObject({ min: '2026-03-01T22:35' })
    expect(endLimits(time, now, '', now - hours)).toMatchObject({ min: '2026-03-01T12:34' })
  })
})

test('problems are reported', () => {
  expect(endProblem('', offer, now)).toBeUndefined()
  expect(endProblem('', { required: true }, now)).toBe('cart.endRequired')
  expect(endProblem('nonsense', offer, now)).toBe('cart.endRequired')
  expect(endProblem('2026-02-28', offer, now)).toBe('cart.endNotAhead')
  expect(endProblem('2026-03-01', offer, now)).toBeUndefined()
  expect(endProblem('2026-04-01', offer, now)).toBe('cart.endTooLate')
  expect(endProblem('9999-12-31', { required: true }, now)).toBeUndefined()
})

test('a time survives the field of a browser', () => {
  const at = new Date('2026-03-29T12:34:00Z')
  expect(new Date(fieldValue(at)).getTime()).toBe(at.getTime())
})
