import { expect, test } from 'vitest'
import { QueryCount } from './query-count.ts'

function message(type: string, ...texts: string[]): Buffer {
  const body = Buffer.from(texts.map((text) => `${text}\0`).join(''))
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

const sent = Buffer.concat([
  message('', '\0\x03', 'user'),
  message('Q', 'begin'),
  message('P', 'named', 'insert into t values ($1)'),
  ...[1, 2].flatMap(() => [message('B', '', 'named'), message('D', 'P'), message('E', ''), message('S')]),
  message('P', '', 'COMMIT'),
  message('B', '', ''),
  message('E', ''),
  message('Q', 'commit prepared'),
])

test.each([1, 7, sent.length])('statements are counted by execution, in pieces of %i bytes', (size) => {
  const count = new QueryCount()
  for (let at = 0; at < sent.length; at += size) count.add(sent.subarray(at, at + size))
  expect([count.statements, count.commits]).toEqual([5, 2])
})
