import { expect, test } from 'vitest'
import { readRenewalTimes } from '#server/commands/renewal-times.ts'

test('a minute and a quarter of an hour, unless told otherwise', () => {
  expect(readRenewalTimes({})).toEqual({ everyMillis: 60_000, graceMillis: 900_000 })
  const given = { 'person-check-seconds': '5', 'person-grace-seconds': '43200' }
  expect(readRenewalTimes(given)).toEqual({ everyMillis: 5_000, graceMillis: 43_200_000 })
})

test.each([
  ['person-check-seconds', '0', 3600],
  ['person-check-seconds', '3601', 3600],
  ['person-check-seconds', '1e2', 3600],
  ['person-grace-seconds', '-1', 43_200],
  ['person-grace-seconds', '43201', 43_200],
  ['person-grace-seconds', '', 43_200],
] as const)('--%s %s is refused', (name, value, max) => {
  expect(() => readRenewalTimes({ [name]: value })).toThrow(`--${name} must be a whole number from 1 to ${max}`)
})
