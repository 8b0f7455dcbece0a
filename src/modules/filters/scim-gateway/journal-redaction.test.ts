import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { shownError, shownOperations, shownPath } from './journal-redaction.ts'

const path = (query: string): string => shownPath({ path: '/scim/Users', query: new URLSearchParams(query) })

test.each([
  ['', '/scim/Users'],
  ['filter=userName eq "ada"&count=1', '/scim/Users?filter=userName eq "ada"&count=1'],
  [
    'attributes=name&excludedAttributes=groups&sortBy=id',
    '/scim/Users?attributes=name&excludedAttributes=groups&sortBy=id',
  ],
  ['aadOptscim062020', '/scim/Users?aadOptscim062020'],
  ['access_token=hunter2', '/scim/Users?access_token=[redacted]'],
  ['x=hunter2', '/scim/Users?x=[redacted]'],
  ['filter=password eq "hunter2"', '/scim/Users?filter=[redacted]'],
  ['filter=urn:x:User:apiToken sw hunter2', '/scim/Users?filter=[redacted]'],
])('of the query "%s" is shown %s', (query, shown) => {
  expect(path(query)).toBe(shown)
})

test('what is shown is bounded', () => {
  expect(path(`filter=${'x'.repeat(100_000)}`).length).toBeLessThan(1100)
  expect(shownError('x'.repeat(100_000)).length).toBeLessThan(600)
  const many = shownOperations(Array.from({ length: 60 }, () => ({ op: 'add', path: 'x'.repeat(10_000) })))
  expect(many).toHaveLength(51)
  expect(many).toContainEqual({ more: 10 })
  expect(JSON.stringify(many).length).toBeLessThan(15_000)
})

test('operations keep words, paths and counts, and lose every value', () => {
  expect(
    shownOperations([
      { op: 'add', path: 'members', count: 3 },
      { op: 'replace', path: 'emails[type eq "a\\"b" and value eq "x@y"].value', value: 'hunter2' },
      { op: 'remove', path: 'emails[value eq "hunter2' },
      { method: 'POST', path: '/Users', data: { password: 'hunter2' } },
      'hunter2',
    ]),
  ).toEqual([
    { op: 'add', path: 'members', count: 3 },
    { op: 'replace', path: 'emails[type eq ? and value eq ?].value' },
    { op: 'remove', path: 'emails[value eq ?' },
    { method: 'POST', path: '/Users' },
    {},
  ])
})

test('no value gets through, whatever the form', () => {
  const secret = 'hunter2'
  const value: fc.Arbitrary<JsonValue> = fc.letrec<{ tree: JsonValue }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.constant(secret),
      fc.integer(),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('value', 'password', 'names', 'op2'), tie('tree'), { maxKeys: 3 }),
    ),
  })).tree
  fc.assert(
    fc.property(value, (operations) => {
      expect(JSON.stringify(shownOperations(operations))).not.toContain(secret)
    }),
  )
})
