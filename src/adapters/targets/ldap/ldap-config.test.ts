import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { DnPattern, ownValue } from './ldap-config.ts'

const hostile = fc.string({
  minLength: 1,
  unit: fc.constantFrom(...'*()\\,+"<>;=#&$ \0\t\n', 'é', '🎉', 'a', '0', '\\2c', '${uid}', ',dc=x'),
})
const pattern = DnPattern.parse('uid=${uid},ou=${team},dc=example,dc=com')

test('any value stays one value: the name has as many parts as the pattern', () => {
  fc.assert(
    fc.property(hostile, hostile, (uid, team) => {
      const dn = pattern.render((name) => (name === 'uid' ? uid : team))
      const values = Dn.parse(dn.toString()).rdns.map((rdn) => rdn.map(({ value }) => value))
      expect(values).toEqual([[uid], [team], ['example'], ['com']])
    }),
  )
})

test('a value that looks like a placeholder is not expanded again', () => {
  expect(pattern.render(() => '${uid},dc=x').toString()).toBe(
    'uid=${uid}\\,dc\\=x,ou=${uid}\\,dc\\=x,dc=example,dc=com',
  )
})

test('a missing value is a bad request with its name', () => {
  for (const value of [undefined, '']) {
    expect(() => pattern.render((name) => (name === 'uid' ? 'ada' : value))).toThrow(
      expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringContaining('"team"') }),
    )
  }
})

test('a pattern lists its placeholders, and must have one in its own part', () => {
  expect([pattern.isOwn('uid'), pattern.isOwn('team'), pattern.ownTypes]).toEqual([true, false, ['uid']])
  for (const text of ['ou=people', 'cn=x,ou=${uid}', '', 'no name']) expect(() => DnPattern.parse(text)).toThrow()
})

test('the value of a name is only returned for names below the base', () => {
  const base = Dn.parse('ou=people,dc=x')
  expect(ownValue(Dn.parse('UID=a\\,b,ou=People,dc=x'), base, 'uid')).toBe('a,b')
  expect(ownValue(Dn.parse('cn=z+uid=a,ou=people,dc=x'), base, 'uid')).toBe('a')
  expect(ownValue(Dn.parse('uid=a,ou=people,dc=y'), base, 'uid')).toBeUndefined()
  expect(ownValue(Dn.parse('cn=a,ou=people,dc=x'), base, 'uid')).toBeUndefined()
})
