import { chmodSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import { auditCommand } from '#server/commands/audit.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import { openStorage } from '#storage/open.ts'
import { temporaryFolder } from '#testing/databases.ts'

const row = (subject: string, more: Partial<AuditRow> = {}): AuditRow => ({
  id: newId(),
  time: new Date(),
  requestor: 'boss',
  subject,
  workflow: { id: 'run-1', name: 'join' },
  target: 'people',
  kind: 'attribute',
  action: 'add',
  attribute: 'mail',
  value: 'a@b',
  ...more,
})

const old = new Date('2020-01-01T00:00:00Z')

async function dataFolder(rows: readonly AuditRow[]): Promise<string> {
  const folder = temporaryFolder()
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  for (const one of rows) await storage.audit.append([one])
  await storage.ready()
  await storage.close()
  return folder
}

async function run(...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await auditCommand(args, io)
  return { code, output, errors, parsed: () => output.map((line) => JSON.parse(line)) }
}

test('an audit that is as it was written verifies; a changed row is named, and the exit code is 1', async () => {
  const data = await dataFolder([row('a'), row('b'), row('c')])
  expect(await run('verify', '--data', data)).toMatchObject({
    code: 0,
    output: ['3 records checked: all as they were written'],
  })
  const database = new DatabaseSync(join(data, 'gatehouse.db'))
  database.exec("update audit set subject = 'x' where chain_seq = 2")
  database.close()
  const { code, output } = await run('verify', '--data', data)
  expect(code).toBe(1)
  expect(output).toEqual([
    expect.stringMatching(/^changed: chain 0, record 2, row [0-9a-f-]{36}$/),
    '3 records checked: 1 problem',
  ])
  expect((await run('verify', '--data', data, '--json')).parsed()).toMatchObject([
    { checked: 3, problems: [{ kind: 'changed', number: 2 }] },
  ])
})

test('the latest changes are told, oldest first, as far as they are asked for', async () => {
  const data = await dataFolder([
    row('a', { time: old }),
    row('b', { caller: 'svc', reason: 'new\u001b[31m', approval: 'ap-1' }),
    row('c', { target: 'crm', requestor: 'hr', workflow: { id: 'run-2', name: 'x' } }),
  ])
  const subjects = async (...args: string[]) =>
    (await run('tail', '--data', data, '--json', ...args)).parsed().map(({ subject }) => subject)
  expect(await subjects()).toEqual(['a', 'b', 'c'])
  expect(await subjects('--limit', '2')).toEqual(['b', 'c'])
  expect(await subjects('--subject', 'B')).toEqual(['b'])
  expect(await subjects('--target', 'crm')).toEqual(['c'])
  expect(await subjects('--requestor', 'hr')).toEqual(['c'])
  expect(await subjects('--workflow', 'run-1')).toEqual(['a', 'b'])
  expect(await subjects('--from', '1h')).toEqual(['b', 'c'])
  expect(await subjects('--until', '1h')).toEqual(['a'])
  const { output } = await run('tail', '--data', data, '--subject', 'b')
  expect(output[0]).toMatch(
    /^[\d-]+T[\d:.]+Z people b attribute \+mail=a@b, by boss \(called by svc\), join run-1, approval ap-1, reason: new\ufffd\[31m$/,
  )
})

test('everything is exported, a line for each row, with its record', async () => {
  const many = Array.from({ length: 1203 }, (_, i) => row(`u${i}`))
  const data = await dataFolder([])
  const storage = openStorage({ dataFolder: data, clock: systemClock, log: silentLogger })
  for (let i = 0; i < many.length; i += 3) await storage.audit.append(many.slice(i, i + 3))
  await storage.close()
  const { code, parsed } = await run('export', '--data', data)
  expect(code).toBe(0)
  expect(parsed().map(({ subject }) => subject)).toEqual(many.map(({ subject }) => subject))
  expect(parsed()[4]).toMatchObject({ id: many[4]?.id, record: { chain: 0, number: 5 } })
  expect((await run('export', '--data', data, '--until', '1h')).output).toEqual([])
})

test('pruning needs a word of confirmation, and leaves an audit that verifies', async () => {
  const data = await dataFolder([row('a', { time: old }), row('b')])
  const unconfirmed = await run('prune', '--data', data, '--before', '30d')
  expect(unconfirmed).toMatchObject({ code: 2 })
  expect(unconfirmed.errors[0]).toContain('--yes')
  expect((await run('tail', '--data', data)).output).toHaveLength(2)
  expect((await run('prune', '--data', data, '--before', '30d', '--yes')).output[0]).toMatch(/^1 record from before/)
  expect((await run('tail', '--data', data)).output).toHaveLength(1)
  expect((await run('verify', '--data', data)).code).toBe(0)
})

test('without a database nothing is made, and it is said', async () => {
  const { code, errors } = await run('verify', '--data', temporaryFolder())
  expect([code, errors]).toEqual([1, [expect.stringContaining('there is no database')]])
})

test.each([
  [['check'], /unknown action "check"/],
  [['constructor'], /unknown action/],
  [['tail', '--limit', '0'], /--limit/],
  [['tail', '--from', 'yesterday'], /--from/],
  [['export', '--until', 'x'], /--until/],
  [['prune', '--yes'], /--before/],
  [[], /1 more argument needed/],
])('%j is wrong usage', async (args, problem) => {
  const { code, errors } = await run(...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(problem)
})

test('a data folder and database that other users can read are closed to them, as by every command', async () => {
  const data = await dataFolder([row('a')])
  const database = join(data, 'gatehouse.db')
  chmodSync(data, 0o755)
  chmodSync(database, 0o644)
  expect((await run('verify', '--data', data)).code).toBe(0)
  expect([data, database].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(['700', '600'])
})
