import { execFileSync } from 'node:child_process'
import { userInfo } from 'node:os'
import process from 'node:process'
import { expect, test } from 'vitest'

/** In a process of its own, which becomes another user once it has read its files. */
const operatorOf = (become: string): string =>
  execFileSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { operatorName } from '#cli/command-line/command-line.ts'; ${become}; console.log(operatorName(undefined))`,
    ],
    { encoding: 'utf8' },
  ).trim()

test('the operator is the system user', () => {
  expect(operatorOf('')).toBe(`${userInfo().username} (command line)`)
})

// Only root can become another user.
test.runIf(process.getuid?.() === 0)('the operator is a number where the system has no name for it', () => {
  expect(operatorOf('process.setuid(1000620000)')).toBe('uid 1000620000 (command line)')
})
