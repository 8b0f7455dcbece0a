import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { entityTag, maxTagsLength, parseEntityTags } from '#protocols/scim/entity-tag.ts'

const matches = (text: string, version: string | undefined) => parseEntityTags(text, 'If-Match').matches(version)

describe('lists', () => {
  test.each([
    ['W/"7"', true],
    ['"7"', true],
    ['"1", W/"7" ,"9"', true],
    ['"1",W/"2"', false],
    ['*', true],
    [' * ', true],
    ['""', false],
    ['"a,b", "7"', true],
  ])('%s of version 7: %s', (text, expected) => expect(matches(text, '7')).toBe(expected))

  test('a resource without a version is matched by * only', () => {
    expect(matches('"undefined"', undefined)).toBe(false)
    expect(matches('*', undefined)).toBe(true)
  })

  test.each(['', '7', 'w/"7"', '"7', '"7" "8"', '"7";', 'W/7', '*, "7"', '"a\\"b"', `"${'x'.repeat(maxTagsLength)}"`])(
    '%s is rejected',
    (text) => expect(() => matches(text, '7')).toThrow(expect.objectContaining({ keyword: 'invalidValue' })),
  )

  test('a long list of nothing ends at once', () => {
    const start = performance.now()
    expect(() => matches(`"a",${' \t'.repeat(4000)}x`, '7')).toThrow()
    expect(performance.now() - start).toBeLessThan(2_000)
  })
})

test('the tag of any version matches only that version', () => {
  expect(entityTag('a330bc54f0671c9')).toBe('W/"a330bc54f0671c9"')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 40 }), (version, other) => {
      fc.pre(version.isWellFormed() && version !== other)
      expect(matches(entityTag(version), version)).toBe(true)
      expect(matches(entityTag(version), other)).toBe(false)
    }),
  )
})
