import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pluginCommand } from '#server/commands/plugin.ts'

async function run(...args: string[]) {
  const out: string[] = []
  const errors: string[] = []
  const code = await pluginCommand(args, { stdout: (line) => out.push(line), stderr: (line) => errors.push(line) })
  return { code, out, errors }
}

test('a new target passes its own test, and is not overwritten', async () => {
  const dir = join(mkdtempSync(join(tmpdir(), 'plugin-command-')), 'made', 'here')
  const made = await run('new', 'target', 'my-crm', '--dir', dir)
  expect(made.code).toBe(0)
  const folder = join(dir, 'my-crm')
  expect(readdirSync(folder).sort()).toEqual(['README.md', 'target.js', 'target.test.js', 'target.yaml'])
  expect(readFileSync(join(folder, 'target.yaml'), 'utf8')).toContain('name: my-crm')
  const tested = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', '--test'], {
    cwd: folder,
    env: {},
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect(tested.stdout).toContain('my-crm: create, find, change, delete')
  expect(tested.stdout).toMatch(/fail 0/)
  expect(tested.status).toBe(0)
  const byCommand = await run('test', folder)
  expect(byCommand.code).toBe(0)
  expect(byCommand.out.join('\n')).toMatch(/fail 0/)

  const before = readFileSync(join(folder, 'target.js'), 'utf8')
  const again = await run('new', 'target', 'my-crm', '--dir', dir)
  expect(again.code).toBe(1)
  expect(again.errors[0]).toMatch(/EEXIST/)
  expect(readFileSync(join(folder, 'target.js'), 'utf8')).toBe(before)
}, 120_000)

test.each([
  [['new', 'target', '../escape'], /no name for a target/],
  [['new', 'target', 'Upper'], /no name for a target/],
  [['new', 'target'], /1 more argument needed/],
  [['new', 'filter', 'x'], /a new plug-in is a "target"/],
  [['old', 'target', 'x'], /unknown action/],
  [['new', 'target', 'x', '--wrong'], /--wrong/],
])('wrong usage: %j', async (args, message) => {
  const { code, errors } = await run(...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(message)
})

test.each(['nowhere', 'docs'])('nothing to test in %s is no success', async (folder) => {
  const { code, errors } = await run('test', folder)
  expect(code).toBe(1)
  expect(errors[0]).toContain(`${folder} is no folder with a test`)
})
