import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
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

const sizeOf = (file: string | undefined): number =>
  file === undefined ? 0 : (statSync(file, { throwIfNoEntry: false })?.size ?? 0)

test.each<[string, (data: string, staged: string | undefined) => boolean]>([
  ['it has its lock', (data) => existsSync(join(data, 'gatehouse.db.lock'))],
  ['it has a file', (_, staged) => existsSync(staged ?? '')],
  ['it stores rows', (_, staged) => existsSync(`${staged}-wal`)],
  ['it moves them into the file', (data, staged) => sizeOf(staged) > 4096 || existsSync(join(data, 'gatehouse.db'))],
])('an import that is killed when %s leaves no file, or a whole one', { timeout: 240_000 }, async (_, isMoment) => {
  const data = temporaryFolder()
  const killed = spawn('bin/gatehouse', ['import', sample, '--data', data], { env, stdio: 'ignore' })
  const stagedFile = () => {
    const folder = readdirSync(data).find((name) => name.startsWith('.import-'))
    return folder === undefined ? undefined : join(data, folder, 'gatehouse.db')
  }
  while (!isMoment(data, stagedFile()) && killed.exitCode === null) await delay(1)
  killed.kill('SIGKILL')
  if (killed.exitCode === null && killed.signalCode === null) await once(killed, 'exit')
  const isWhole = existsSync(join(data, 'gatehouse.db'))
  const staged = stagedFile()
  const list = shell(`bin/gatehouse workflow list --data ${data}`)
  if (isWhole) expect(list).toMatchObject({ status: 0 })
  else expect(list.stderr).toContain(staged === undefined ? 'there is no database' : 'an import to')
  const again = shell(`bin/gatehouse import ${sample} --data ${data}`)
  if (isWhole) expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining('the database is not empty') })
  else expect(again).toMatchObject({ status: 0, stdout: expect.stringContaining('Users and groups: 6') })
  expect(readdirSync(data).filter((name) => name.startsWith('.import-') && !isWhole)).toEqual([])
  expect(shell(`bin/gatehouse audit verify --data ${data}`)).toMatchObject({ status: 0 })
})
