import { describe, expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { bulkRequestSchema, maxBulkOperations, readBulkRequest } from './bulk.ts'

const read = (operations: JsonValue, rest = {}) =>
  readBulkRequest({ schemas: [bulkRequestSchema], Operations: operations, ...rest })

const post = { method: 'POST', path: '/Users', bulkId: 'q', data: { userName: 'Alice' } }

test('RFC 7644 3.7.3: every kind of operation', () => {
  const { operations, failOnErrors } = read(
    [
      post,
      { method: 'PUT', path: '/Users/b7', version: 'W/"3694e05e9dff591"', data: { userName: 'Bob' } },
      {
        method: 'PATCH',
        path: '/Users/5d',
        version: 'W/"edac3253e2c0ef2"',
        data: [{ op: 'remove', path: 'nickName' }],
      },
      { method: 'DELETE', path: '/Users/e9', version: 'W/"0ee8add0a938e1a"' },
    ],
    { failOnErrors: 1 },
  )
  expect(failOnErrors).toBe(1)
  expect(operations).toEqual([
    { ...post, version: undefined },
    {
      method: 'PUT',
      path: '/Users/b7',
      bulkId: undefined,
      version: 'W/"3694e05e9dff591"',
      data: { userName: 'Bob' },
    },
    {
      method: 'PATCH',
      path: '/Users/5d',
      bulkId: undefined,
      version: 'W/"edac3253e2c0ef2"',
      data: {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
        Operations: [{ op: 'remove', path: 'nickName' }],
      },
    },
    { method: 'DELETE', path: '/Users/e9', bulkId: undefined, version: 'W/"0ee8add0a938e1a"', data: undefined },
  ])
})

test('letter case of names and methods does not count', () => {
  expect(readBulkRequest({ operations: [{ Method: 'delete', PATH: '/Users/a' }] }).operations).toMatchObject([
    { method: 'DELETE', path: '/Users/a' },
  ])
})

describe('rejected as a whole, before anything is done', () => {
  test.each<[JsonValue, string]>([
    [null, 'invalidSyntax'],
    ['x', 'invalidSyntax'],
    [{}, 'invalidSyntax'],
    [['x'], 'invalidSyntax'],
    [[{ ...post, method: 'GET' }], 'invalidValue'],
    [[{ ...post, method: 1 }], 'invalidValue'],
    [[{ ...post, path: 'Users' }], 'invalidValue'],
    [[{ ...post, path: null }], 'invalidValue'],
    [[{ ...post, bulkId: '' }], 'invalidValue'],
    [[{ method: 'POST', path: '/Users', data: {} }], 'invalidValue'],
    [[{ ...post, bulkId: 7 }], 'invalidValue'],
    [[{ ...post, version: 7 }], 'invalidValue'],
    [[{ ...post, data: 'x' }], 'invalidSyntax'],
    [[{ ...post, data: [] }], 'invalidSyntax'],
    [[{ method: 'PUT', path: '/Users/a' }], 'invalidSyntax'],
    [[post, post], 'invalidValue'],
  ])('%j is %s', (operations, keyword) => {
    expect(() => read(operations)).toThrow(expect.objectContaining({ status: 400, keyword }))
  })

  test.each([-1, 1.5, '1', true])('failOnErrors %j is invalidValue', (failOnErrors) => {
    expect(() => read([], { failOnErrors })).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  })

  test('RFC 7644 3.7.4: too many operations are 413 without a scimType', () => {
    const operations = Array.from({ length: maxBulkOperations + 1 }, () => ({ method: 'DELETE', path: '/Users/a' }))
    expect(read(operations.slice(1)).operations).toHaveLength(maxBulkOperations)
    expect(() => read(operations)).toThrow(
      expect.objectContaining({
        status: 413,
        keyword: undefined,
        publicText: 'The size of the bulk operation exceeds the maxOperations (1000). Split the request.',
      }),
    )
  })

  test('another message is rejected', () => {
    expect(() => readBulkRequest({ schemas: ['urn:x'], Operations: [] })).toThrow(
      expect.objectContaining({ keyword: 'invalidSyntax' }),
    )
  })
})
