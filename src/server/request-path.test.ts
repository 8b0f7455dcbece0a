import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { normalizePath, soundBeginning } from '#server/http-request.ts'

describe('normalizePath', () => {
  test.each([
    ['/a/b', '/a/b'],
    ['/%61dmin/%7Euser', '/admin/~user'],
    ['/a%2fb', '/a%2Fb'],
    ['/a/...', '/a/...'],
    ['/a/.hidden', '/a/.hidden'],
    ['/%C3%A4', '/%C3%A4'],
  ])('%s becomes %s', (raw, expected) => {
    expect(normalizePath(raw)).toBe(expected)
  })

  test.each([
    'a',
    '/a/../b',
    '/a/%2e%2E/b',
    '/..',
    '/a/.',
    '/%',
    '/%4',
    '/%zz',
    '/a\\b',
    '/a b',
    '/%00',
    '/%C3',
    '/\u0001',
  ])('rejects %j', (raw) => {
    expect(() => normalizePath(raw)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  })

  test('rejects a path that is too long with 414', () => {
    expect(() => normalizePath(`/${'a'.repeat(9000)}`)).toThrow(expect.objectContaining({ status: 414 }))
  })

  test('is idempotent, and throws only refusals', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '/', '.', '%', '2', 'e', 'E', 'F', '\\', 'ä') }), (tail) => {
        try {
          const once = normalizePath(`/${tail}`)
          expect(normalizePath(once)).toBe(once)
          expect(decodeURIComponent(once).split('/')).not.toContain('\0')
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
    )
  })
})

describe('soundBeginning', () => {
  test.each([
    ['/scim/people/Users/%zz', '/scim/people/Users'],
    ['/scim/people/../crm', '/scim/people'],
    ['/scim/people/Users\\x', '/scim/people'],
    ['/scim/people/a%2fb?x=1', '/scim/people'],
    ['/scim/people/Users?filter=%', '/scim/people/Users'],
    ['/%2e%2e/x', ''],
    ['//x', ''],
    ['http://evil/scim', ''],
    ['*', ''],
  ])('of %s is %j', (raw, expected) => {
    expect(soundBeginning(raw)).toBe(expected)
  })
})
