import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareValues } from '#identity/filter/evaluate.ts'
import { afterPrefix, foldKey, indexKey, isLong, isStorable, lookupKey } from './text-keys.ts'

const order = (a: string, b: string): number => Math.sign(compareValues(`x${a}`, `x${b}`, true))
const text = fc.string({ unit: 'binary', maxLength: 6 }).filter(isStorable)
/** Texts around the length at which keys are cut, with a shared beginning. */
const longish = fc
  .tuple(fc.nat({ max: 4 }), fc.constantFrom('', 'a', 'b', '\u{1f600}', '\u{1f600}a', '\uffff', 'ab', 'zz'))
  .map(([more, tail]) => 'x'.repeat(198 + more) + tail)

test('all texts with a prefix are between it and its successor, and no others are', () => {
  fc.assert(
    fc.property(text, text, (prefix, other) => {
      const end = afterPrefix(prefix)
      const within = order(other, prefix) >= 0 && (end === undefined || order(other, end) < 0)
      expect(within).toBe(other.startsWith(prefix))
      const longer = prefix + other
      expect(order(longer, prefix)).toBeGreaterThanOrEqual(0)
      if (end !== undefined) expect(order(longer, end)).toBe(-1)
    }),
  )
})

test('the greatest prefix has no successor, and the surrogates are skipped', () => {
  expect(afterPrefix('')).toBeUndefined()
  expect(afterPrefix('\u{10ffff}\u{10ffff}')).toBeUndefined()
  expect(afterPrefix('a\u{10ffff}')).toBe('b')
  expect(afterPrefix('\ud7ff')).toBe('\ue000')
})

test('keys keep the order of their texts, and distinguish long from short', () => {
  fc.assert(
    fc.property(longish, longish, (a, b) => {
      const keys = order(indexKey(a), indexKey(b))
      if (keys !== 0) expect(keys).toBe(order(a, b))
      else expect(isLong(a)).toBe(isLong(b))
      if (!isLong(a)) expect(keys === 0).toBe(a === b)
    }),
  )
})

test('a key is well formed and bounded', () => {
  fc.assert(
    fc.property(longish, (value) => {
      expect(indexKey(value).isWellFormed()).toBe(true)
      expect(indexKey(value).length).toBeLessThanOrEqual(202)
    }),
  )
  expect(lookupKey('x'.repeat(100_000)).length).toBeLessThan(300)
  expect(lookupKey(`${'x'.repeat(300)}a`)).not.toBe(lookupKey(`${'x'.repeat(300)}b`))
  expect(lookupKey('ABC')).toBe(foldKey('abc'))
})
