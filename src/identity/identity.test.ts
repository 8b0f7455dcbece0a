import fc from 'fast-check'
import { expect, test } from 'vitest'
import { entryIdentity, formerIdentity, identitiesOf, issuerIdentity, isUser, ownIdentity } from './identity.ts'

test('different parts make different identities, wherever a separator is in them', () => {
  const text = fc.string({ unit: fc.constantFrom(':', '%', 'a', 'é', '\0', '\ud800', ' '), maxLength: 4 })
  fc.assert(
    fc.property(text, text, text, text, (a, b, c, d) => {
      const same = a.toWellFormed() === c.toWellFormed() && b.toWellFormed() === d.toWellFormed()
      expect(entryIdentity(a, b) === entryIdentity(c, d)).toBe(same)
      expect(entryIdentity(a, b)).not.toBe(issuerIdentity(c, d))
    }),
  )
})

test('a long identity is stored as a hash, and still differs from others', () => {
  const long = (end: string) => issuerIdentity('https://issuer.example', 'x'.repeat(5000) + end)
  expect(long('1')).toHaveLength('sha256:'.length + 43)
  expect(long('1')).not.toBe(long('2'))
})

test('letter case is part of an issuer’s subject, and not of a login from before identities', () => {
  expect(issuerIdentity('https://i', 'ADA')).not.toBe(issuerIdentity('https://i', 'ada'))
  expect(formerIdentity('ADA')).toBe(formerIdentity('ada'))
})

test('a row from before identities belongs to the user who has the login; a row with an identity to no other user', () => {
  const ada = { identity: entryIdentity('people', '1'), login: 'Ada' }
  expect(identitiesOf(ada)).toEqual([ada.identity, formerIdentity('ada')])
  expect(isUser(formerIdentity('ADA'), ada)).toBe(true)
  expect(isUser(entryIdentity('contractors', '1'), ada)).toBe(false)
  expect(isUser(ownIdentity('jobs'), { ...ada, login: 'jobs' })).toBe(false)
  expect(isUser(undefined, ada)).toBe(false)
})
