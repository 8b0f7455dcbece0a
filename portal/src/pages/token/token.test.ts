import { expect, test } from 'vitest'
import { claimText, issuedAt } from './claim-text.ts'
import { countdown } from './countdown.ts'
import { qrPath } from './qr-path.ts'
import { tokenParts } from './token-parts.ts'

const minute = 60_000

test.each([
  [0, 10 * minute, '10:00', 100, 'good'],
  [9 * minute, 10 * minute, '1:00', 10, 'waiting'],
  [10 * minute - 1, 10 * minute, '0:01', 0, 'waiting'],
  [10 * minute, 10 * minute, '0:00', 0, 'bad'],
  [99 * minute, 10 * minute, '0:00', 0, 'bad'],
  [0, 61 * minute + 1, '1:01:01', 100, 'good'],
] as const)('at %i of %i there is %s left', (now, ends, text, percent, urgency) => {
  expect(countdown(now, ends, 0)).toMatchObject({ text, percent, urgency, isOver: urgency === 'bad' })
})

test('works without a start, and with one after the end', () => {
  expect(countdown(0, 90_000, undefined)).toMatchObject({ text: '1:30', percent: 100 })
  expect(countdown(0, 90_000, 100_000)).toMatchObject({ text: '1:30', percent: 100 })
})

test('the most needed part comes first, and unknown names are shown too', () => {
  const parts = tokenParts({ constructor: 'odd', kubeconfig: 'file', id_token: 'jwt', Usage: 'Do this.' })
  expect(parts.map(({ name, kind }) => [name, kind])).toEqual([
    ['Usage', 'text'],
    ['id_token', 'token'],
    ['kubeconfig', 'file'],
    ['constructor', 'value'],
  ])
})

test('claims are times, lists or JSON', () => {
  const dateTime = (at: number): string => new Date(at).toISOString()
  expect(claimText('exp', 1_790_845_964, dateTime)).toBe('2026-10-01T09:12:44.000Z')
  expect(claimText('exp', 'soon', dateTime)).toBe('soon')
  expect(claimText('level', 20, dateTime)).toBe('20')
  expect(claimText('groups', ['a', 'b'], dateTime)).toBe('a, b')
  expect(claimText('realm', { roles: [] }, dateTime)).toBe('{"roles":[]}')
  expect(issuedAt({ iat: 2 })).toBe(2_000)
  expect(issuedAt(undefined)).toBeUndefined()
})

test('a QR code has a quiet zone of four units', () => {
  const { size, path } = qrPath('otpauth://totp/x')
  const squares = Array.from(path.matchAll(/M(\d+) (\d+)h1v1h-1z/g), ([, x, y]) => [Number(x), Number(y)])
  expect(squares.length).toBeGreaterThan(100)
  expect(Math.min(...squares.flat())).toBe(4)
  expect(Math.max(...squares.flat())).toBe(size - 5)
})
