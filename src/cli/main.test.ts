import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('main.ts', import.meta.url))

test('an unknown command is repeated without characters that a terminal obeys', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'chek\u001b]0;title\u0007'], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect([status, stdout]).toEqual([2, ''])
  expect(stderr.split('\n')[0]).toContain('gatehouse: unknown command "chek\\u001b]0;title\\u0007"')
})
