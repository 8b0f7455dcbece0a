import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases.ts'
import { failedTestsFile } from '#testing/failed-tests.ts'
import { longFiles } from '#testing/long-first.ts'

/** A run of tests in a file of their own: its exit code, and what it printed. */
function runTier(settings: string, file: string, env: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const config = join(folder, 'vitest.config.mjs')
  writeFileSync(config, `export default { test: { root: ${JSON.stringify(folder)}, globals: true, ${settings} } }`)
  writeFileSync(join(folder, 'one.test.js'), file)
  const args = [resolve('node_modules/vitest/vitest.mjs'), 'run', '--config', config]
  const { status, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    timeout: 60_000,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  return { status, stderr }
}

test('a tier whose test fails fails, also where PostgreSQL was started for it', { timeout: 120_000 }, () => {
  const settings = `globalSetup: [${JSON.stringify(resolve('test/support/postgres-setup.ts'))}]`
  const statuses = [2, 1].map((value) => runTier(settings, `test('one', () => expect(1).toBe(${value}))`).status)
  expect(statuses).toEqual([1, 0])
})

test('a page that crashed once is told, and two of them fail the run', { timeout: 120_000 }, () => {
  const reporter = JSON.stringify(resolve('test/support/crashed-pages.ts'))
  const settings = `reporters: [${reporter}], retry: { count: 1, condition: /Page crashed/ }`
  const crashing = (name: string) => `let ${name} = 0
test('${name}', () => { if (${name}++ === 0) throw new Error('page.goto: Page crashed') })
`
  const told = (name: string) => `tried again: one.test.js > ${name}`
  const one = runTier(settings, `${crashing('a')}test('b', () => {})`)
  expect(one).toEqual({ status: 0, stderr: expect.stringContaining(told('a')) })
  expect(one.stderr).not.toContain(told('b'))
  const failed = join(temporaryFolder(), 'failed')
  const two = runTier(settings, crashing('a') + crashing('b'), { [failedTestsFile]: failed })
  expect(two).toEqual({ status: 1, stderr: expect.stringMatching(/> a\n.*> b\nFAILED: pages of 2 tests/) })
  expect(readFileSync(failed, 'utf8')).toBe('pages of 2 tests crashed; 1 is put up with\n')
})

/** What the end of a run tells of a file that fails. */
function toldOf(file: string): string {
  const failed = join(temporaryFolder(), 'failed')
  const settings = `reporters: [${JSON.stringify(resolve('test/support/failed-tests.ts'))}]`
  expect(runTier(settings, file, { [failedTestsFile]: failed }).status).toBe(1)
  return readFileSync(failed, 'utf8')
}

test('what failed is named for the end of a run, and nothing else', { timeout: 120_000 }, () => {
  const file = `test('a', () => {})
describe('group', () => { test('b', () => expect('x').toBe('y')) })
describe('hook', () => { beforeAll(() => { throw new Error('no\\nserver') }); test('c', () => {}) })
test('d', () => { throw new Error('long '.repeat(100)) })
`
  expect(toldOf(file).split('\n')).toEqual([
    'one.test.js > hook: no server',
    expect.stringMatching(/^one\.test\.js > group > b: expected 'x' to be 'y'/),
    `one.test.js > d: ${'long '.repeat(100)}`.slice(0, 240),
    '',
  ])
})

test.each([
  ['a file that cannot be loaded', `throw new Error('not here')`, 'one.test.js: not here\n'],
  [
    'what nobody awaits',
    `test('a', async () => { void Promise.reject(new Error('late')); await new Promise((done) => setTimeout(done, 50)) })`,
    'outside of a test: late\n',
  ],
])('so is %s', { timeout: 60_000 }, (_what, file, told) => {
  expect(toldOf(file)).toBe(told)
})

test('the files that begin first are there', () => {
  expect(longFiles.filter((file) => !existsSync(file))).toEqual([])
})
