import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { callerRef } from '#identity/subject.ts'
import { entryIdentity, identitiesOf, issuerIdentity, isUser, loginIdentity, ownIdentity } from './identity.ts'

test('different parts make different identities, even if they contain a separator', () => {
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

test('letter case counts in an issuer’s subject, and not in a login from before identities', () => {
  expect(issuerIdentity('https://i', 'ADA')).not.toBe(issuerIdentity('https://i', 'ada'))
  expect(loginIdentity('ADA')).toBe(loginIdentity('ada'))
})

test('a row from before identities belongs to the user who has the login; a row with an identity to no other user', () => {
  const ada = { identity: entryIdentity('people', '1'), login: 'Ada' }
  expect(identitiesOf(ada)).toEqual([ada.identity, loginIdentity('ada')])
  expect(isUser(loginIdentity('ADA'), ada)).toBe(true)
  expect(isUser(entryIdentity('contractors', '1'), ada)).toBe(false)
  expect(isUser(ownIdentity('jobs'), { ...ada, login: 'jobs' })).toBe(false)
  expect(isUser(undefined, ada)).toBe(false)
})

test('a row from before identities belongs to no caller without an entry, nor to one whose login a token chose', () => {
  const stored = loginIdentity('ada')
  const external = { identity: issuerIdentity('https://idp', 'ada'), login: 'ada' }
  const renamed = { identity: entryIdentity('people', '2'), login: 'ada', isClaimed: true }
  const long = { identity: issuerIdentity('https://idp', 'x'.repeat(5000)), login: 'ada' }
  for (const user of [external, renamed, long, { identity: ownIdentity('ada'), login: 'ada' }]) {
    expect(isUser(stored, user)).toBe(false)
    expect(identitiesOf(user)).toEqual([user.identity])
    expect(isUser(user.identity, user)).toBe(true)
  }
  expect(isUser(stored, { identity: stored, login: 'ada' })).toBe(true)
})

test('the login of a linked caller is a claim where the entry does not hold it', () => {
  const parts = { dn: Dn.parse('uid=eve,o=x'), identity: entryIdentity('people', '3'), uid: 'ada' }
  const link = {
    dn: parts.dn,
    filter: parseFilter('(uid=eve)'),
    id: '3',
    uidAttr: 'preferred_username',
    added: new Attributes(),
  }
  const attributes = Attributes.from({ uid: ['eve'], login: ['eve2'] })
  attributes.setClaim('preferred_username', ['ada'])
  expect(callerRef({ ...parts, attributes, link })).toMatchObject({ login: 'ada', isClaimed: true })
  expect(callerRef({ ...parts, attributes, link }, 'login')).toMatchObject({ login: 'eve2' })
  expect(isUser(loginIdentity('eve2'), callerRef({ ...parts, attributes, link }, 'login'))).toBe(true)
  expect(callerRef({ ...parts, attributes, link }, 'nickname')).toMatchObject({ login: 'ada', isClaimed: true })
  const own = { ...parts, uid: 'eve', attributes, link: { ...link, uidAttr: 'uid' } }
  expect(isUser(loginIdentity('EVE'), callerRef(own))).toBe(true)
})
