import { expect, test } from 'vitest'
import { listResponse } from '#protocols/scim/list-response.ts'

test('numbers are numbers, and the page says where it stands', () => {
  expect(listResponse([{ id: 'a' }], 7, { startIndex: 3 })).toEqual({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: 7,
    startIndex: 3,
    itemsPerPage: 1,
    Resources: [{ id: 'a' }],
  })
})

test('a page by cursor has no index, and the last one no next cursor', () => {
  expect(listResponse([], 7, { nextCursor: 'x' })).toMatchObject({ totalResults: 7, nextCursor: 'x' })
  expect(Object.keys(listResponse([], 7, { nextCursor: undefined }))).toEqual([
    'schemas',
    'totalResults',
    'itemsPerPage',
    'Resources',
  ])
})
