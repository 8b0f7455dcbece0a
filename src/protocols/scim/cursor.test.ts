import fc from 'fast-check'
import { expect, test } from 'vitest'
import { maxCursorLength, readCursor, writeCursor } from '#protocols/scim/cursor.ts'

const scope = ['/scim', 'User', 'active eq true', '', '']
const refused = expect.objectContaining({ status: 400, keyword: 'invalidCursor' })

test('comes back as it went, in unreserved characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (position) => {
      const cursor = writeCursor(scope, position)
      expect(cursor).toMatch(/^[A-Za-z0-9._~-]+$/)
      expect(readCursor(scope, cursor)).toBe(position)
    }),
  )
})

test('is no cursor of another query', () => {
  const cursor = writeCursor(scope, 'p1')
  for (let i = 0; i < scope.length; i++) {
    expect(() => readCursor(scope.with(i, 'other'), cursor)).toThrow(refused)
  }
  // The parts are told apart, not run together.
  expect(() => readCursor(['/sci', 'mUser', ...scope.slice(2)], cursor)).toThrow(refused)
})

test('anything else is refused', () => {
  const cursor = writeCursor(scope, 'p1')
  for (const text of ['x', `${cursor}=`, `${cursor} `, cursor.slice(1), '%', 'é', 'A'.repeat(maxCursorLength + 1)]) {
    expect(() => readCursor(scope, text)).toThrow(refused)
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => readCursor(scope, text)).toThrow(refused)
    }),
  )
})

test('a position that is not UTF-8 is refused', () => {
  const bytes = Buffer.concat([Buffer.from(writeCursor(scope, ''), 'base64url'), Buffer.from([0xff, 0xfe])])
  expect(() => readCursor(scope, bytes.toString('base64url'))).toThrow(refused)
})
