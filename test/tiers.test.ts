import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases.ts'

/** The exit code of a run with the set-up of the tiers that need real parts. */
function runTier(body: string): number | null {
  const folder = temporaryFolder()
  const globalSetup = resolve('test/support/postgres-setup.ts')
  const config = { test: { root: folder, globals: true, include: ['*.test.js'], globalSetup: [globalSetup] } }
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)}`)
  writeFileSync(join(folder, 'one.test.js'), `test('one', () => { ${body} })`)
  const args = [resolve('node_modules/vitest/vitest.mjs'), 'run', '--config', join(folder, 'vitest.config.mjs')]
  return spawnSync(process.execPath, args, { cwd: folder, timeout: 60_000 }).status
}

test('a tier whose test fails fails, also where PostgreSQL was started for it', { timeout: 120_000 }, () => {
  expect([runTier('expect(1).toBe(2)'), runTier('expect(1).toBe(1)')]).toEqual([1, 0])
})
