import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'

const sample = 'test/upgrades/export-format-1.jsonl'
/** Of the sample. */
const env = { ...process.env, GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 9).toString('base64') }
const shell = (text: string) => spawnSync('bash', ['-c', `set -o pipefail; ${text}`], { env, encoding: 'utf8' })

test('an export is piped into an import, and standard output has nothing else', { timeout: 120_000 }, () => {
  const [one, two, three] = [temporaryFolder(), temporaryFolder(), temporaryFolder()]
  expect(shell(`bin/gatehouse import ${sample} --data ${one}`)).toMatchObject({ status: 0, stderr: '' })
  const piped = shell(`bin/gatehouse export - --data ${one} | tee ${two}/copy | bin/gatehouse import - --data ${three}`)
  expect(piped).toMatchObject({ status: 0, stderr: expect.stringContaining('Wrote standard output') })
  expect(piped.stdout).toContain('Imported standard input')
  const lines = readFileSync(join(two, 'copy'), 'utf8').trimEnd().split('\n')
  for (const line of lines) JSON.parse(line)
  expect(shell(`bin/gatehouse audit verify --data ${three}`)).toMatchObject({ status: 0 })
  // SIGPIPE, as for any program.
  expect(shell(`bin/gatehouse export - --data ${one} | true`)).toMatchObject({ status: 141, stderr: '' })
})

test('an import that is killed leaves a database into which the next one imports', { timeout: 120_000 }, async () => {
  const data = temporaryFolder()
  const killed = spawn('bin/gatehouse', ['import', '-', '--data', data], { env, stdio: ['pipe', 'ignore', 'ignore'] })
  const text = readFileSync(sample, 'utf8')
  killed.stdin.write(text.slice(0, text.lastIndexOf('{"end"')))
  // Its log has pages only once rows are stored, so some may not be on disk yet.
  while (!existsSync(join(data, 'gatehouse.db-wal'))) await delay(20)
  await delay(500)
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  const left = new DatabaseSync(join(data, 'gatehouse.db'))
  expect(left.prepare('select name from sqlite_schema').all()).toEqual([])
  left.close()
  const again = shell(`bin/gatehouse import ${sample} --data ${data}`)
  expect(again).toMatchObject({ status: 0, stdout: expect.stringContaining('Users and groups: 6') })
  expect(shell(`bin/gatehouse audit verify --data ${data}`)).toMatchObject({ status: 0 })
})
