import { expect, test } from 'vitest'
import { parseMoment } from '#kernel/moment.ts'

const now = new Date('2030-01-02T03:04:05Z')

test.each([
  ['90s', '2030-01-02T03:02:35.000Z'],
  ['15m', '2030-01-02T02:49:05.000Z'],
  ['1h', '2030-01-02T02:04:05.000Z'],
  ['7d', '2029-12-26T03:04:05.000Z'],
  ['2030-01-01', '2030-01-01T00:00:00.000Z'],
  ['2030-01-01T12:00:00.5Z', '2030-01-01T12:00:00.500Z'],
  ['2030-01-01T12:00+02:00', '2030-01-01T10:00:00.000Z'],
])('%s is a moment', (text, iso) => {
  expect(parseMoment(text, now)?.toISOString()).toBe(iso)
})

test.each(['', '1', '1w', '-1h', '1h ', '9999999h', 'yesterday', '2030', '2030-13-01', '2030-01-01T99:99:99Z'])(
  '"%s" is none',
  (text) => {
    expect(parseMoment(text, now)).toBeUndefined()
  },
)
