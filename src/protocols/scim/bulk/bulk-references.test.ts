import { expect, test } from 'vitest'
import {
  deferReferences,
  pathReference,
  referencesIn,
  resolvePath,
  resolveReferences,
} from '#protocols/scim/bulk/bulk-references.ts'

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

test('references are whole values, however deep', () => {
  const value = { a: ['bulkId:x', { b: 'bulkId:y' }], c: 'see bulkId:z', 'bulkId:w': 1 }
  expect([...referencesIn(value)]).toEqual(['x', 'y'])
  const ids = new Map([['x', '1']])
  expect(resolveReferences(value, ids)).toEqual({ ...value, a: ['1', { b: 'bulkId:y' }] })
})

test('a key of JavaScript machinery stays a key', () => {
  const value = JSON.parse('{"__proto__":{"a":"bulkId:x"}}')
  const resolved = resolveReferences(value, new Map([['x', '1']]))
  expect(JSON.stringify(resolved)).toBe('{"__proto__":{"a":"1"}}')
  expect(Object.getPrototypeOf(resolved)).toBe(Object.prototype)
})

test('a reference in a path', () => {
  expect(pathReference('/Users/bulkId:x')).toBe('x')
  expect(pathReference('/Users/bulkId%3Aa%20b')).toBe('a b')
  expect(pathReference('/Users/bulkId:%')).toBe('%')
  expect(pathReference('/Users/x')).toBeUndefined()
  expect(resolvePath('/Users/bulkId:x', 'a/b')).toBe('/Users/a%2Fb')
})

test('what refers to something open is put in later: whole attributes, values of lists, parts of extensions', () => {
  const data = {
    displayName: 'A',
    members: [{ value: 'bulkId:open' }, { value: 'u1' }, { value: 'bulkId:known' }],
    [enterprise]: { department: 'D', manager: { value: 'bulkId:open' } },
    owner: { value: 'bulkId:open' },
  }
  expect(deferReferences(data, new Set(['open']))).toEqual({
    data: {
      displayName: 'A',
      members: [{ value: 'u1' }, { value: 'bulkId:known' }],
      [enterprise]: { department: 'D' },
    },
    operations: [
      { op: 'add', path: 'members', value: [{ value: 'bulkId:open' }] },
      { op: 'add', path: `${enterprise}:manager`, value: { value: 'bulkId:open' } },
      { op: 'add', path: 'owner', value: { value: 'bulkId:open' } },
    ],
  })
  expect(deferReferences(data, new Set())).toEqual({ data, operations: [] })
})
