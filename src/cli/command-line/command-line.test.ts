import { execFileSync } from 'node:child_process'
import { userInfo } from 'node:os'
import process from 'node:process'
import { expect, test } from 'vitest'
import { runCommand } from '#testing/gateway/command.ts'

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

test.each([
  ['check my-gateway', 'check: unexpected argument "my-gateway" (did you mean "--config my-gateway"?)'],
  ['check --config x y', 'check: unexpected argument "y"'],
  ['user list people', 'user: unexpected argument "people" (did you mean "--config people"?)'],
  ['user add ada people', 'user: unexpected argument "people"'],
  ['user list --confg x', 'user: unknown option "--confg" (did you mean "--config"?)'],
  ['mail list --config x', 'mail: unknown option "--config"'],
  [
    'explain --config x GET localhost:8080/portal',
    'explain: "localhost:8080/portal" is not a URL with https:// or http://',
  ],
])('gatehouse %s: the message says what was probably meant', async (line, message) => {
  const { code, stdout, stderr } = await runCommand(line.split(' '))
  expect([code, stdout, stderr.split('\n')[0]]).toEqual([2, '', `gatehouse ${message}`])
})

// Only root can become another user.
test.runIf(process.getuid?.() === 0)('the operator is a number where the system has no name for it', () => {
  expect(operatorOf('process.setuid(1000620000)')).toBe('uid 1000620000 (command line)')
})
