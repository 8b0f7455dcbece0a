import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bearerChallenge, readBearer } from '#protocols/jwt/bearer.ts'

describe('readBearer', () => {
  test('the scheme is read in any letter case', () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect(readBearer({ authorization: `${scheme} a.b.c` })).toEqual({ kind: 'token', token: 'a.b.c' })
    }
  })

  test('a missing header and other schemes are not a bearer credential', () => {
    expect(readBearer({})).toEqual({ kind: 'none' })
    expect(readBearer({ authorization: 'Basic dTpw' })).toEqual({ kind: 'none' })
    expect(readBearer({ authorization: 'Bearer' })).toEqual({ kind: 'none' })
    expect(readBearer({ authorization: '' })).toEqual({ kind: 'none' })
  })

  test('a JWT without a scheme is a token only where that is accepted', () => {
    expect(readBearer({ authorization: 'a.b-1.c_2' })).toEqual({ kind: 'none' })
    expect(readBearer({ authorization: 'a.b-1.c_2' }, { bare: true })).toEqual({ kind: 'token', token: 'a.b-1.c_2' })
    for (const authorization of ['a.b', 'a.b.c.d', 'a.b.', 'a.b.c d', 'a.b.c\n', 'Basic dTpw', 'abc']) {
      expect(readBearer({ authorization }, { bare: true })).toEqual({ kind: 'none' })
    }
  })

  test('two Authorization headers are rejected, separate or joined', () => {
    expect(readBearer({ authorization: ['Bearer a', 'Bearer b'] }).kind).toBe('malformed')
    expect(readBearer({ authorization: 'Bearer a, Bearer b' }).kind).toBe('malformed')
  })

  test('only the characters of a token are accepted', () => {
    for (const token of ['a b', 'a"b', 'a\tb', 'ä', '=', 'a=b']) {
      expect(readBearer({ authorization: `Bearer ${token}` }).kind).toBe('malformed')
    }
  })
})

describe('bearerChallenge', () => {
  test('has no error if none is given', () => {
    expect(bearerChallenge({ realm: 'r', scope: 's' })).toEqual({ 'www-authenticate': 'Bearer realm="r", scope="s"' })
  })

  test('texts stay inside their quotes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (realm) => {
        const value = bearerChallenge({ realm, error: 'invalid_token', description: realm })['www-authenticate']
        expect(value).toMatch(
          /^Bearer realm="(?:[^"\\]|\\.)*", error="invalid_token", error_description="(?:[^"\\]|\\.)*"$/,
        )
        expect(value).toMatch(/^[\t\x20-\x7e]*$/)
      }),
    )
  })
})
