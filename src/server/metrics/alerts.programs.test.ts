import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'

const alerts = 'deploy/prometheus/alerts.yaml'
const check = (file: string) => spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })

test('promtool accepts the alerts, and no others', () => {
  expect(check(alerts)).toMatchObject({ stderr: '', status: 0, stdout: expect.stringMatching(/SUCCESS: \d+ rules/) })
  const folder = join(temporaryFolder(), 'broken')
  mkdirSync(folder)
  const broken = join(folder, 'alerts.yaml')
  writeFileSync(broken, readFileSync(alerts, 'utf8').replace('expr: ', 'expr: sum('))
  expect(check(broken).status).toBe(1)
})
