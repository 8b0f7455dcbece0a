import { expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { readSearchRequest, searchSchema } from '#protocols/scim/search-request.ts'

test('RFC 7644 3.4.3: the example becomes the query that a GET would have', () => {
  const query = readSearchRequest({
    schemas: [searchSchema],
    attributes: ['displayName', 'userName'],
    filter: 'displayName sw "smith"',
    startIndex: 1,
    count: 10,
  })
  expect(Object.fromEntries(query)).toEqual({
    attributes: 'displayName,userName',
    filter: 'displayName sw "smith"',
    startIndex: '1',
    count: '10',
  })
})

test('RFC 9865 3: an empty cursor stays one', () => {
  expect(readSearchRequest({ schemas: [searchSchema], cursor: '', count: 10 }).get('cursor')).toBe('')
})

test('letter case, null and unknown members do not count', () => {
  const query = readSearchRequest({ SortBY: 'userName', sortOrder: null, attributes: [], domain: 'x', __proto__: {} })
  expect(Object.fromEntries(query)).toEqual({ sortBy: 'userName' })
})

test.each<[JsonValue, string]>([
  [[], 'invalidSyntax'],
  ['x', 'invalidSyntax'],
  [{ schemas: 'x' }, 'invalidSyntax'],
  [{ schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'] }, 'invalidSyntax'],
  [{ filter: 1 }, 'invalidValue'],
  [{ filter: ['a'] }, 'invalidValue'],
  [{ attributes: 'userName' }, 'invalidValue'],
  [{ attributes: [1] }, 'invalidValue'],
  [{ count: '10' }, 'invalidValue'],
  [{ count: 1.5 }, 'invalidValue'],
  [{ startIndex: 1e300 }, 'invalidValue'],
  [{ cursor: 7 }, 'invalidValue'],
])('%j is %s', (body, keyword) => {
  expect(() => readSearchRequest(body)).toThrow(expect.objectContaining({ status: 400, keyword }))
})
