import fc from 'fast-check'
import { expect, test } from 'vitest'
import { resourceAddress } from './resource-address.ts'

test.each([
  ['01a1de1b-4d41-7427-91c2-9c97bb8b255c', 'https://x/scim/Users/01a1de1b-4d41-7427-91c2-9c97bb8b255c'],
  ['a/b?c#d', 'https://x/scim/Users/a%2Fb%3Fc%23d'],
  ['ada\n', 'https://x/scim/Users/ada%0A'],
])('%s', (id, address) => {
  expect(resourceAddress('https://x/scim', 'User', id)).toBe(address)
})

test('is the encoded id, whatever it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
      expect(resourceAddress('', 'Group', id)).toBe(`/Groups/${encodeURIComponent(id)}`)
    }),
  )
})
