import process from 'node:process'
import { expect, test } from 'vitest'
import { commandOutput, runCommand } from '#testing/gateway/command.ts'

test('help prints all commands, the help of one, or of one action with its own options', async () => {
  expect(await commandOutput('help')).toMatch(/^ {2}backup +Copy the SQLite database/m)
  expect(await commandOutput('help', 'mail')).toBe(await commandOutput('mail', '--help'))
  const help = await commandOutput('help', 'mail', 'retry')
  expect(help).toMatch(/^Queue a mail again/)
  expect(help).toContain('  gatehouse mail retry ID [--reason TEXT] [options]\n')
  expect(help).toMatch(/--reason TEXT +Reason, for the audit/)
  expect(help).not.toContain('--state')
  expect(await commandOutput('help', 'sts', 'explain')).toBe(await commandOutput('sts', 'explain', '--help'))
})

test.each([
  [['help', 'mial'], 'unknown command "mial" (did you mean "mail"?)'],
  [['help', 'mail', 'lst'], 'unknown action "lst" (did you mean "list"?)'],
  [['help', 'backup', 'now'], '"gatehouse backup" has no actions'],
])('%j is a wrong usage', async (args, message) => {
  expect(await runCommand(args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
})

test('help for programs has actions and options', async () => {
  const help = JSON.parse(await commandOutput('help', 'mail', '--output', 'json'))
  expect(help).toMatchObject({
    name: 'mail',
    actions: [{ name: 'mail list' }, { name: 'mail retry', arguments: ['ID'] }],
  })
  const names = (await commandOutput('help', 'mail', 'retry', '--output', 'json')).toString()
  expect(JSON.parse(names).options.map(({ name }: { name: string }) => name)).toContain('reason')
})

test('version has what a report of a problem needs', async () => {
  const { node, sqlite } = process.versions
  const text = await commandOutput('version')
  expect(text).toMatch(/^Gatehouse {2}\d+\.\d+\.\d+\nCommit {5}([0-9a-f]{40}|unknown)\n/)
  expect(text).toContain(`Node.js    ${node}\nSQLite     ${sqlite}\n`)
  expect(JSON.parse(await commandOutput('version', '--output', 'json'))).toMatchObject({ node, sqlite })
})
