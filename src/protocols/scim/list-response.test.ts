import { expect, test } from 'vitest'
import { maxCount, parsePage } from '#protocols/scim/list-response.ts'

test.each([
  ['', { startIndex: 1, count: 100 }],
  ['startIndex=0&count=0', { startIndex: 1, count: 0 }],
  ['startIndex=-5&count=-1', { startIndex: 1, count: 0 }],
  ['startIndex=7&count=2', { startIndex: 7, count: 2 }],
  ['count=100000', { startIndex: 1, count: maxCount }],
  ['startIndex=&count=', { startIndex: 1, count: 100 }],
])('%s', (query, expected) => expect(parsePage(new URLSearchParams(query))).toEqual(expected))

test.each(['count=x', 'count=1.5', 'startIndex=1e3', 'startIndex=99999999999999999999'])('refuses %s', (query) => {
  expect(() => parsePage(new URLSearchParams(query))).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
})
