import { expect, test } from 'vitest'
import { acceptsJson, isJsonContent, parseBody, scimBounds } from './scim-call.ts'

test.each([
  ['application/scim+json', true],
  ['Application/JSON; charset=UTF-8', true],
  ['application/json;charset="utf-8"', true],
  ['application/json; charset=latin1', false],
  ['application/json-patch+json', false],
  ['text/plain', false],
  [undefined, false],
])('content type %s', (value, expected) => expect(isJsonContent(value)).toBe(expected))

test.each([
  [undefined, true],
  ['*/*', true],
  ['text/html, application/*;q=0.5', true],
  ['application/scim+json', true],
  ['text/html', false],
  ['application/json;q=0, application/xml', false],
])('accept %s', (value, expected) => expect(acceptsJson(value)).toBe(expected))

const parse = (text: string) => parseBody(Buffer.from(text))
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const refused = expect.objectContaining({ status: 400, code: 'INVALID_JSON' })

test('the largest documented requests are read', () => {
  expect(parse(nested(scimBounds.depth))).toBeInstanceOf(Array)
  const members = Array.from({ length: 100_000 }, (_, i) => ({ value: String(i), type: 'User' }))
  expect(
    parse(JSON.stringify({ schemas: [], Operations: [{ op: 'add', path: 'members', value: members }] })),
  ).toBeTruthy()
  const name = { givenName: 'A', familyName: 'B', formatted: 'A B' }
  const data = { userName: 'u', name, emails: [{ value: 'a@b.c', type: 'work', primary: true }], active: true }
  const operations = Array.from({ length: 1000 }, (_, i) => ({ method: 'POST', path: '/Users', bulkId: `b${i}`, data }))
  expect(parse(JSON.stringify({ schemas: [], Operations: operations }))).toBeTruthy()
})

test.each([
  nested(scimBounds.depth + 1),
  '['.repeat(1_000_000),
  `{"a":`.repeat(1_000_000),
  `"\\"${'"['.repeat(99_999)}`,
])('a body beyond the limits is rejected: %.20s', (text) => {
  expect(() => parse(text)).toThrow(refused)
})

test.each(['', '{', '{"a":1}}', 'nul', "{'a':1}"])('%s is not JSON', (text) => {
  expect(() => parse(text)).toThrow(refused)
})
