import { expect, test } from 'vitest'
import { LineBuffer } from './line-buffer.ts'

function gathered() {
  const batches: string[] = []
  const buffer = new LineBuffer({ write: (text) => batches.push(text) })
  return { batches, buffer }
}

test('passes on what it holds when it is told to, in its order, and nothing twice', () => {
  const { batches, buffer } = gathered()
  for (const line of ['a\n', 'b\n', 'c\n']) buffer.write(line)
  expect(batches).toEqual([])
  buffer.passOn()
  buffer.passOn()
  expect(batches).toEqual(['a\nb\nc\n'])
})

test('never holds more than a batch', () => {
  const { batches, buffer } = gathered()
  const line = `${'x'.repeat(999)}\n`
  for (let i = 0; i < 100; i++) buffer.write(line)
  expect(batches.map((batch) => batch.length)).toEqual(Array(6).fill(16_000))
  buffer.passOn()
  expect(batches.join('')).toBe(line.repeat(100))
})
