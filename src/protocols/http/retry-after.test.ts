import { expect, test } from 'vitest'
import { readRetryAfter, requestedPause } from './retry-after.ts'

const now = new Date('2030-01-02T03:04:05Z')
const inTenSeconds = Math.floor(now.getTime() / 1000) + 10

test('Retry-After is seconds or a date', () => {
  expect(readRetryAfter('7', now)).toBe(7000)
  expect(readRetryAfter('Wed, 02 Jan 2030 03:05:05 GMT', now)).toBe(60_000)
  expect(readRetryAfter('Wed, 02 Jan 2030 03:00:00 GMT', now)).toBe(0)
  for (const bad of [undefined, '', '-1', 'soon', '99999999999']) expect(readRetryAfter(bad, now) ?? 0).toBe(0)
})

test.each([
  [{ 'retry-after': '30' }, 30_000],
  [{ 'retry-after': '999999999' }, 3_600_000],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '10' }, 10_000],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(inTenSeconds) }, 10_000],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(inTenSeconds * 1000) }, 10_000],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2030-01-02T03:04:15Z' }, 10_000],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1000000000' }, 0],
  [{ 'ratelimit-remaining': '0', 'ratelimit-reset': '10' }, 10_000],
  [{ 'retry-after': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '10' }, 1000],
  [{ 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '10' }, undefined],
  [{ 'x-ratelimit-remaining': '0' }, undefined],
  [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'soon' }, undefined],
  [{}, undefined],
])('%j is a pause of %s ms', (headers, millis) => {
  expect(requestedPause(headers, now)).toBe(millis)
})
