import { expect, test } from 'vitest'
import { type LdapFilter, toWireFilter } from '#protocols/ldap/ldap-filter.ts'

const text = (filter: LdapFilter): string => toWireFilter(filter).toString()
const nothing = '(!(objectClass=*))'

test('values are values, with any characters', () => {
  expect(text({ kind: 'equal', attribute: 'uid', value: '*)(uid=*' })).toBe('(uid=\\2a\\29\\28uid=\\2a)')
  expect(text({ kind: 'equal', attribute: 'objectGUID', value: Buffer.from([0, 0x2a]) })).toBe('(objectGUID=\\00\\2a)')
})

test('an invalid attribute, invalid text or empty text finds nothing', () => {
  for (const attribute of ['uid)(x', 'a b', '', 'a=b', 'x'.repeat(300), '1.', 'a;']) {
    expect(text({ kind: 'present', attribute })).toBe(nothing)
  }
  expect(text({ kind: 'equal', attribute: 'uid', value: '' })).toBe(nothing)
  expect(text({ kind: 'equal', attribute: 'uid', value: '\ud800' })).toBe(nothing)
  expect(text({ kind: 'substring', attribute: 'uid', any: ['a\udc00'] })).toBe(nothing)
  expect(text({ kind: 'present', attribute: 'userCertificate;binary' })).toBe('(userCertificate;binary=*)')
  expect(text({ kind: 'present', attribute: '2.5.4.3' })).toBe('(2.5.4.3=*)')
})

test('an empty `and` matches everything, an empty `or` nothing', () => {
  expect(text({ kind: 'and', filters: [] })).toBe('(objectClass=*)')
  expect(text({ kind: 'or', filters: [] })).toBe(nothing)
})

test('the caller tests white space in substrings', () => {
  const substring = (part: Partial<Extract<LdapFilter, { kind: 'substring' }>>) =>
    text({ kind: 'substring', attribute: 'cn', any: [], ...part })
  expect(substring({ initial: 'a  b', any: ['c\nd'], final: 'e f' })).toBe('(cn=a*b*c*d*e*f)')
  expect(substring({ initial: ' a', final: 'b ' })).toBe('(cn=*a*b*)')
  expect(substring({ any: [' ', ''] })).toBe('(cn=*)')
})
