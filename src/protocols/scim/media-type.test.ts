import { expect, test } from 'vitest'
import { acceptsJson, isJsonContent } from '#protocols/scim/media-type.ts'

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
