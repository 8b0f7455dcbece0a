import { expect, test } from 'vitest'
import { readAttributes } from './read-attributes.ts'

test('each line is an attribute, names may repeat, and dn is the name of the caller', () => {
  expect(readAttributes(' sub = idp \n\ngroups=a\ngroups=b=c\ndn=uid=ada,o=x')).toEqual({
    attributes: { sub: ['idp'], groups: ['a', 'b=c'] },
    dn: 'uid=ada,o=x',
  })
  expect(readAttributes('')).toEqual({ attributes: {} })
})

test('a line without a name or a value is named', () => {
  expect(readAttributes('uid=ada\nnonsense').wrong).toBe('nonsense')
  expect(readAttributes('=x').wrong).toBe('=x')
})
