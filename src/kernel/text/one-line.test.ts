import { expect, test } from 'vitest'
import { inWrittenOrder, oneLine } from './one-line.ts'

test('a text becomes one line that reverses nothing', () => {
  expect(oneLine(' Ada\r\nBcc: eve\u2028x\u0000 ', 100)).toBe('Ada Bcc: eve x')
  expect(oneLine('Ada \u202e(eve)\u2066', 100)).toBe('Ada (eve)')
  expect(inWrittenOrder('a\n\u202eb\u2069')).toBe('a\nb')
  expect(oneLine('שלום\u200f', 100)).toBe('שלום\u200f')
})

test('a long text is cut between two characters', () => {
  expect(oneLine('abc', 2)).toBe('ab')
  expect(oneLine('a😀b', 2)).toBe('a')
  expect(oneLine('a😀b', 3)).toBe('a😀')
})
