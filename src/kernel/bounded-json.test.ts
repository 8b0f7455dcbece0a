import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { duplicateMember, parseBoundedJson } from '#kernel/bounded-json.ts'

const bounds = { depth: 3, members: 3, elements: 4, values: 12 }
const parse = (text: string, most = bounds) => parseBoundedJson(Buffer.from(text), most).value
const refused = (publicText: string) => expect.objectContaining({ status: 400, code: 'INVALID_JSON', publicText })

describe('bounds', () => {
  test.each([
    '[[[1]]]',
    '{"a":1,"b":2,"c":3}',
    '[1,2,3,4]',
    '[[1,2,3],[1,2,3],[]]',
    '{"a":"[[[[{{{{,,,,,,,,,,,,,,,,,,,,"}',
    '{"a":"\\"[[[[,,,,,,,,,,,,,,","\\\\":[]}',
    ' [ 1 , 2 ] ',
    '""',
    '12',
  ])('%s is within the limits', (text) => {
    expect(parse(text)).toEqual(JSON.parse(text))
  })

  test.each([
    ['[[[[]]]]', 'The request body is nested deeper than 3 levels.'],
    ['{"a":{"b":{"c":{}}}}', 'The request body is nested deeper than 3 levels.'],
    ['{"a":1,"b":2,"c":3,"d":4}', 'The request body has an object of more than 3 members.'],
    ['{"a":1,"a":2,"a":3,"a":4}', 'The request body has an object of more than 3 members.'],
    ['[{"a":[1,2,3,4,5]}]', 'The request body has a list of more than 4 elements.'],
    ['[[1,2,3],[1,2,3],[1,2,3,4]]', 'The request body has more than 12 values.'],
    // Text that is not JSON is rejected too, without reading all of it.
    ['['.repeat(1_000_000), 'The request body is nested deeper than 3 levels.'],
    [`[${'"\\u0041",'.repeat(100_000)}`, 'The request body has a list of more than 4 elements.'],
    [`"${'\\"'.repeat(100_000)}`, 'The request body is not valid JSON: it ends too early, at line 1, column 200002.'],
    ['', 'The request body is not valid JSON: it is empty.'],
    ['{"a":1}}', 'The request body is not valid JSON: unexpected character at line 1, column 8.'],
    ['{"a":1,\n\n "b": tru}', 'The request body is not valid JSON: unexpected character at line 3, column 7.'],
    ['{"a":1,}', 'The request body is not valid JSON: unexpected character at line 1, column 8.'],
    ['[1,]', 'The request body is not valid JSON: unexpected character at line 1, column 4.'],
    ['[1}', 'The request body is not valid JSON: unexpected character at line 1, column 3.'],
    ['{"a" 1}', 'The request body is not valid JSON: unexpected character at line 1, column 6.'],
    ['{a: 1}', 'The request body is not valid JSON: unexpected character at line 1, column 2.'],
    ['{"a": "b\nc"}', 'The request body is not valid JSON: unexpected character at line 1, column 9.'],
    [`${']'.repeat(100)}1,2,3,4,5,6`, 'The request body is not valid JSON: unexpected character at line 1, column 1.'],
    ['"\\', 'The request body is not valid JSON: unexpected character at line 1, column 2.'],
    [
      `${'\n'.repeat(1_000_000)}x`,
      'The request body is not valid JSON: unexpected character at line 1000001, column 1.',
    ],
    [`"${'a'.repeat(1_000_000)}`, 'The request body is not valid JSON: it ends too early, at line 1, column 1000002.'],
    // The place is not searched for in a longer text.
    [
      `${'\n'.repeat(2_000_000)}x`,
      'The request body is not valid JSON: a character is unexpected, or it ends too early.',
    ],
  ])('%.60s is rejected', (text, publicText) => {
    expect(() => parse(text)).toThrow(refused(publicText))
  })

  test('nothing is built from a text beyond the limits', () => {
    const parsed: string[] = []
    const { parse: original } = JSON
    JSON.parse = (text: string) => {
      parsed.push(text)
      return original(text)
    }
    try {
      expect(() => parse(`[${'{"a":1},'.repeat(100_000)}1]`)).toThrow('more than 4 elements')
    } finally {
      JSON.parse = original
    }
    expect(parsed).toEqual([])
  })

  test('every value within the limits is read, and every other is rejected', () => {
    const size = (value: unknown): { depth: number; members: number; elements: number; values: number } => {
      if (typeof value !== 'object' || value === null) return { depth: 0, members: 0, elements: 0, values: 0 }
      const inner = Object.values(value).map(size)
      const most = (pick: (of: ReturnType<typeof size>) => number) => Math.max(0, ...inner.map(pick))
      const [members, elements] = Array.isArray(value) ? [0, inner.length] : [inner.length, 0]
      return {
        depth: 1 + most(({ depth }) => depth),
        members: Math.max(
          members,
          most((of) => of.members),
        ),
        elements: Math.max(
          elements,
          most((of) => of.elements),
        ),
        // An opening bracket and every comma count.
        values: Math.max(1, inner.length) + inner.reduce((sum, { values }) => sum + values, 0),
      }
    }
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const is = size(value)
        const fits = (Object.keys(bounds) as (keyof typeof bounds)[]).every((name) => is[name] <= bounds[name])
        const text = JSON.stringify(value)
        if (fits) expect(parse(text)).toEqual(JSON.parse(text))
        else expect(() => parse(text)).toThrow('the body ')
      }),
    )
  })

  test.each(['hunter2', '{"password":hunter2}', '{"password":"hunter2"', '{"password":"hunter2",}', '["hunter2"'])(
    'the error, which is logged, does not quote %s',
    (text) => {
      const thrown = (() => {
        try {
          return parse(text)
        } catch (error) {
          return error as Error
        }
      })() as Error
      expect(thrown.message).toMatch(/^the body does not parse: (?:unexpected character|it ends too early,) at line 1/)
      expect([thrown.message, String(thrown.cause), thrown.stack].join()).not.toContain('hunter')
    },
  )

  test('encodings other than UTF-8 are rejected', () => {
    expect(() => parseBoundedJson(Buffer.from([0x22, 0xe9, 0x22]), bounds)).toThrow(
      refused('The request body is not valid JSON: it is not UTF-8.'),
    )
  })
})

describe('members that appear twice', () => {
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

  test('serialized values have no member twice', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => duplicateMember(JSON.stringify(value)) === undefined))
  })
})
