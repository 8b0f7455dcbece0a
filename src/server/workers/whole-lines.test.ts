import { expect, test } from 'vitest'
import { WholeLines } from '#server/workers/whole-lines.ts'

test('passes on whole lines, and the rest at the end', () => {
  const written: string[] = []
  const lines = new WholeLines((text) => written.push(text))
  const bytes = Buffer.from('a\nbä\nc')
  for (const [start, end] of [
    [0, 1],
    [1, 4],
    [4, 6],
    [6, 7],
  ] as const) {
    lines.add(bytes.subarray(start, end))
  }
  expect(written).toEqual(['a\n', 'bä\n'])
  lines.end()
  lines.end()
  expect(written).toEqual(['a\n', 'bä\n', 'c\n'])
})
