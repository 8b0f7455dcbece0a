import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { expect, test } from 'vitest'

const run = (...args: readonly string[]) => spawnSync(process.execPath, ['test/run.ts', ...args], { encoding: 'utf8' })

test.each([
  [['untt'], 'no tier and no test file: untt (did you mean "unit"?)'],
  [['no/such.test.ts'], 'no tier and no test file: no/such.test.ts'],
  [['-t', 'a title'], '-t needs a file or a tier before it'],
  [['-u'], '-u needs a file before it'],
  [['lint', '-t', 'a title'], '-t is for tests, and the tier lint has none'],
  [['lint', '-u'], '-u is for tests, and the tier lint has none'],
])('npm test -- %j is refused', (args, problem) => {
  const { status, stderr } = run(...args)
  expect(status).toBe(2)
  expect(stderr).toContain(problem)
  expect(stderr).toContain('Usage: npm test')
})

test('one test is counted as one', { timeout: 240_000 }, () => {
  const { status, stdout } = run('src/kernel/errors.test.ts', '-t', 'set aside')
  expect(stdout).toMatch(/^1 tier passed, 0 failed: 1 test in /m)
  expect(status).toBe(0)
})
