import { describe, expect, test } from 'vitest'
import { maxDepth, parseBody } from '#protocols/scim/parse-body.ts'

const parse = (text: string) => parseBody(Buffer.from(text))
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const refused = expect.objectContaining({ status: 400, code: 'INVALID_JSON' })

describe('depth', () => {
  test('up to the bound, and brackets inside texts are none', () => {
    expect(parse(nested(maxDepth))).toBeInstanceOf(Array)
    const text = `\\"${'['.repeat(1000)}\\\\`
    expect(parse(`{"a":"${text}","b":[]}`)).toMatchObject({ b: [] })
    expect(parse(`[${'[],'.repeat(1000)}[]]`)).toHaveLength(1001)
  })

  test.each([nested(maxDepth + 1), '['.repeat(1_000_000), `{"a":`.repeat(1_000_000), `"\\"${'"['.repeat(99_999)}`])(
    'beyond it nothing is parsed',
    (text) => {
      const start = performance.now()
      expect(() => parse(text)).toThrow(refused)
      expect(performance.now() - start).toBeLessThan(200)
    },
  )
})

test.each(['', '{', '{"a":1}}', 'nul', "{'a':1}"])('%s is no JSON', (text) => {
  expect(() => parse(text)).toThrow(refused)
})

test('other encodings than UTF-8 are refused', () => {
  expect(() => parseBody(Buffer.from([0x22, 0xe9, 0x22]))).toThrow(refused)
})
