import { expect, test } from 'vitest'
import { isolated } from './isolated.ts'
import { fill } from './messages.ts'

test('a name is shown in its written order, and does not affect its neighbors', () => {
  expect(isolated('Ada Lovelace')).toBe('Ada Lovelace')
  expect(isolated('nimda\u202e')).toBe('nimda')
  expect(isolated('\u2067a\u202eb\u2069\u202c')).toBe('ab')
  expect(fill('{name} asks', { name: 'Ada\u202eecalevoL' })).toBe('AdaecalevoL asks')
})

test('right-to-left text keeps its direction, and does not affect its neighbors', () => {
  expect(isolated('مرحبا')).toBe('\u2068مرحبا\u2069')
  expect(isolated('\u2069שלום\u202e')).toBe('\u2068שלום\u2069')
})
