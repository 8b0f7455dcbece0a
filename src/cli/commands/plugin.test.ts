import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { formatIssue } from '#config/context/located-issue.ts'
import { loadConfiguration } from '#config/load/load.ts'
import { pluginCommand } from './plugin.ts'

async function run(...args: string[]) {
  const out: string[] = []
  const errors: string[] = []
  const code = await pluginCommand(args, { stdout: (line) => out.push(line), stderr: (line) => errors.push(line) })
  return { code, out, errors }
}

const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'plugin-command-'))

const kinds = [
  ['target', 'create, find, change, delete'],
  ['task', 'a person without a mail address is given one'],
  ['mapper', 'the first letters of the names'],
  ['filter', 'greets the caller'],
  ['mechanism', 'the owner of a key is the caller'],
] as const

test.each(kinds)(
  'a new %s passes its own tests, its configuration is valid, and it is not overwritten',
  async (kind, title) => {
    const dir = join(emptyFolder(), "it's", 'made $& here')
    const made = await run('new', kind, 'my-own', '--dir', dir)
    const folder = join(dir, 'my-own')
    const files = [`${kind}.ts`, `${kind}.test.ts`, `${kind}.yaml`, 'README.md', 'types.ts']
    expect(made).toEqual({
      code: 0,
      out: [`Created ${folder} with ${files.join(', ')}`, `Next: gatehouse plugin test ${folder}`],
      errors: [],
    })
    expect(readdirSync(folder).sort()).toEqual([...files].sort())
    const texts = files.map((file) => readFileSync(join(folder, file), 'utf8'))
    expect(texts[2]).toContain('name: my-own')
    expect(texts.join('')).not.toContain(`plugin-${kind}`)
    expect(texts[0]).toContain("from './types.ts'")

    const { issues } = await loadConfiguration({ folder, catalog, environment: {}, strictSecrets: true })
    expect(issues.map(formatIssue)).toEqual([])

    const tested = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', '--test'], {
      cwd: folder,
      env: {},
      encoding: 'utf8',
      timeout: 200_000,
    })
    expect(tested.stdout).toContain(`my-own: ${title}`)
    expect(tested.stdout).toMatch(/fail 0/)
    expect(tested.status).toBe(0)

    const again = await run('new', kind, 'my-own', '--dir', dir)
    expect(again.code).toBe(1)
    expect(again.errors).toEqual([`gatehouse plugin: ${folder} already exists; choose another name`])
    expect(files.map((file) => readFileSync(join(folder, file), 'utf8'))).toEqual(texts)
  },
  120_000,
)

test('test runs the tests of a folder and reports a failure', async () => {
  const dir = emptyFolder()
  await run('new', 'mapper', 'initials', '--dir', dir)
  const folder = join(dir, 'initials')
  const passed = await run('test', folder)
  expect(passed.out.join('\n')).toMatch(/fail 0/)
  expect(passed.code).toBe(0)
  const file = join(folder, 'mapper.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace('.toUpperCase()', ''))
  const failed = await run('test', folder)
  expect(failed.out.join('\n')).toMatch(/fail [1-9]/)
  expect(failed.code).toBe(1)
}, 60_000)

test.each([
  [['new', 'target', '../escape'], /NAME must have lower-case letters/],
  [['new', 'filter', 'Upper'], /NAME must have lower-case letters/],
  [['new', 'mechanism', ''], /NAME must have lower-case letters/],
  [['new', 'task', 'a/b'], /NAME must have lower-case letters/],
  [['new', 'target'], /missing argument: NAME/],
  [['new', 'job', 'x'], /KIND must be one of target, task, mapper, filter, mechanism, not "job"/],
  [['new', '../target', 'x'], /KIND must be one of/],
  [['old', 'target', 'x'], /unknown action/],
  [['new', 'target', 'x', '--wrong'], /--wrong/],
])('wrong usage: %j', async (args, message) => {
  const { code, errors } = await run(...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(message)
})

test('existing files stay unchanged', async () => {
  const dir = emptyFolder()
  mkdirSync(join(dir, 'taken'))
  expect((await run('new', 'task', 'taken', '--dir', dir)).code).toBe(1)
  expect(readdirSync(join(dir, 'taken'))).toEqual([])
})

test.each(['nowhere', 'docs'])('no tests in %s is a failure', async (folder) => {
  const { code, errors } = await run('test', folder)
  expect(code).toBe(1)
  expect(errors[0]).toContain(`${folder} is not a folder with tests`)
})
