import fc from 'fast-check'
import { expect, test } from 'vitest'
import { duplicateMember } from '#kernel/duplicate-members.ts'

test.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":{"b":1},"c":[{"d":1,"e":2,"d":3}]}', 'd'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"":1,"":2}', ''],
  ['{"a\\"":1,"a\\"" :2}', 'a"'],
  ['{"a":"a","b":"a:","c":["a","a"],"d":{"a":1}}', undefined],
  ['[{"a":1},{"a":1}]', undefined],
  ['"a:b"', undefined],
  ['{"A":1,"a":2}', undefined],
])('%s has %j twice', (text, name) => {
  expect(duplicateMember(text)).toBe(name)
})

test('what was written from a value has none', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => duplicateMember(JSON.stringify(value)) === undefined))
})
