import { randomBytes } from 'node:crypto'
import { chmodSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { auditCommand } from './audit.ts'

const row = (subject: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
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

const sealedSince = expect.stringMatching(/^authenticated since 20\d\d-\S+Z: nothing is proven about earlier times$/)
const old = new Date('2020-01-01T00:00:00Z')

/** As a gateway leaves it: with its key, and sealed. */
async function dataFolder(rows: readonly AuditEntry[]): Promise<string> {
  const folder = temporaryFolder()
  const storage = await storageOf(folder)
  await storage.audit.authenticate()
  for (const one of rows) await storage.audit.append([one])
  await storage.ready()
  await storage.close()
  return folder
}

const storageOf = async (dataFolder: string) =>
  openStorage({
    dataFolder,
    clock: systemClock,
    log: silentLogger,
    auditKeys: await loadAuditKeys({ environment: {}, dataFolder }, 'gateway'),
  })

async function run(...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const io = { stdout: (line: string) => void output.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await auditCommand(args, io)
  return { code, output, errors, parsed: () => JSON.parse(output.join('\n')) }
}

test('an unchanged audit verifies; a changed row is named, and the exit code is 1', async () => {
  const data = await dataFolder([row('a'), row('b'), row('c')])
  expect(await run('verify', '--data', data)).toMatchObject({
    code: 0,
    output: [sealedSince, '3 records checked: all unchanged'],
  })
  const database = new DatabaseSync(join(data, 'gatehouse.db'))
  database.exec("update audit set subject = 'x' where chain_seq = 2")
  database.close()
  const { code, output } = await run('verify', '--data', data)
  expect(code).toBe(1)
  expect(output).toEqual([
    expect.stringMatching(/^changed: chain 0, record 2, row [0-9a-f-]{36}$/),
    sealedSince,
    '3 records checked: 1 problem',
  ])
  expect((await run('verify', '--data', data, '--output', 'json')).parsed()).toMatchObject({
    checked: 3,
    problems: [{ kind: 'changed', number: 2 }],
  })
})

test('a refusal of an unknown caller shows that the caller is unknown', async () => {
  const data = await dataFolder([row('', { requestor: '', kind: 'token', action: 'refuse', attribute: 'jti' })])
  const { output } = await run('tail', '--data', data)
  expect(output[0]).toMatch(/Z people \(unknown\) token refused jti\S*, by \(unknown\), join run-1$/)
})

test('tail prints the latest matching changes, oldest first', async () => {
  const data = await dataFolder([
    row('a', { time: old }),
    row('b', { caller: 'svc', reason: 'new\u001b[31m', approval: 'ap-1' }),
    row('c', { target: 'crm', requestor: 'hr', workflow: { id: 'run-2', name: 'x' } }),
  ])
  const subjects = async (...args: string[]) =>
    (await run('tail', '--data', data, '--output', 'json', ...args))
      .parsed()
      .map(({ subject }: { subject: string }) => subject)
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

test('exports every row as a line, with its record', async () => {
  const many = Array.from({ length: 1203 }, (_, i) => row(`u${i}`))
  const data = await dataFolder([])
  const storage = await storageOf(data)
  for (let i = 0; i < many.length; i += 3) await storage.audit.append(many.slice(i, i + 3))
  await storage.close()
  const { code, output } = await run('export', '--data', data)
  const lines = () => output.map((line) => JSON.parse(line))
  expect(code).toBe(0)
  expect(lines().map(({ subject }: { subject: string }) => subject)).toEqual(many.map(({ subject }) => subject))
  expect(lines()[4]).toMatchObject({ id: many[4]?.id, record: { chain: 0, number: 5 } })
  expect((await run('export', '--data', data, '--until', '1h')).output).toEqual([])
})

test('pruning needs confirmation, and leaves an audit that verifies', async () => {
  const data = await dataFolder([row('a', { time: old }), row('b')])
  const unconfirmed = await run('prune', '--data', data, '--before', '30d')
  expect(unconfirmed).toMatchObject({ code: 2 })
  expect(unconfirmed.errors[0]).toContain('--yes')
  expect((await run('tail', '--data', data)).output).toHaveLength(2)
  expect((await run('prune', '--data', data, '--before', '30d', '--yes')).output[0]).toMatch(
    /^Deleted 1 record from before/,
  )
  expect((await run('tail', '--data', data)).output).toHaveLength(2)
  expect((await run('tail', '--data', data, '--target', 'audit', '--output', 'json')).parsed()).toMatchObject([
    { kind: 'audit', action: 'delete', attribute: 'records', requestor: expect.stringContaining('(command line)') },
  ])
  expect(await run('verify', '--data', data)).toMatchObject({
    code: 0,
    output: ['pruned: chain 0, records 1 to 1', sealedSince, '2 records checked: all unchanged'],
  })
})

test('prune keeps what an audit sink has not received, unless --unsent is given', async () => {
  const data = await dataFolder([row('a', { time: old }), row('b')])
  const storage = await storageOf(data)
  await storage.auditSinks.configure(new Map([['siem', 'beginning']]))
  await storage.close()
  const kept = await run('prune', '--data', data, '--before', '30d', '--yes')
  expect(kept).toMatchObject({ code: 1, output: [expect.stringMatching(/^Deleted 0 records/)] })
  expect(kept.errors[0]).toContain('siem')
  expect(await run('prune', '--data', data, '--before', '30d', '--yes', '--unsent')).toMatchObject({
    code: 0,
    output: [expect.stringMatching(/^Deleted 1 record /)],
  })
})

test('without the key nothing is proven, and verify reports an audit that no gateway sealed', async () => {
  const data = await dataFolder([row('a')])
  rmSync(join(data, 'keys'), { recursive: true })
  const { code, output } = await run('verify', '--data', data)
  expect(code).toBe(1)
  expect(output).toEqual([
    expect.stringMatching(/^no key: key [\w-]{12} is required to verify it\. Set GATEHOUSE_AUDIT_KEY/),
    '1 record checked: 1 problem',
  ])
  const fresh = temporaryFolder()
  const storage = openStorage({ dataFolder: fresh, clock: systemClock, log: silentLogger })
  await storage.audit.append([row('a')])
  await storage.close()
  expect(await run('verify', '--data', fresh)).toMatchObject({
    code: 1,
    output: [expect.stringMatching(/^not authenticated/), '1 record checked: all unchanged'],
  })
})

test('a head that was reset is forged, until an operator accepts it', async () => {
  const data = await dataFolder([row('a'), row('b'), row('c')])
  const database = new DatabaseSync(join(data, 'gatehouse.db'))
  database.exec(`delete from audit where chain_seq = 3;
    update audit_chains set seq = 2, hash = (select hash from audit where chain_seq = 2) where chain = 0`)
  database.close()
  const { code, output } = await run('verify', '--data', data)
  expect([code, output[0]]).toEqual([1, expect.stringMatching(/^forged: chain 0, record 2 \(.*without the key/)])
  expect((await run('seal', '--data', data)).code).toBe(2)
  expect((await run('seal', '--data', data, '--yes', '--by', 'ada')).output).toEqual(['Sealed 2 records'])
  expect(await run('verify', '--data', data)).toMatchObject({
    code: 0,
    output: [
      expect.stringMatching(/^authenticated from chain 0, record 3 on/),
      sealedSince,
      expect.stringMatching(/^3 records/),
    ],
  })
})

test('seal warns when it replaces a key that it does not have', async () => {
  const data = await dataFolder([row('a')])
  rmSync(join(data, 'keys'), { recursive: true })
  vi.stubEnv('GATEHOUSE_AUDIT_KEY', randomBytes(32).toString('base64'))
  onTestFinished(() => void vi.unstubAllEnvs())
  const { code, output, errors } = await run('seal', '--data', data, '--yes')
  expect([code, output]).toEqual([0, ['Sealed 1 record']])
  expect(errors).toEqual([expect.stringMatching(/this replaced the key [\w-]{12} of the audit\. Give every gateway/)])
  expect((await run('seal', '--data', data, '--yes')).errors).toEqual([])
})

test('the audit is compared with anchors and exports, which may be lines of a log or of a sink', async () => {
  const data = await dataFolder([row('a'), row('b'), row('c')])
  const storage = await storageOf(data)
  const anchor = await storage.audit.anchor()
  await storage.close()
  const [anchors, exported] = [join(data, 'anchors.jsonl'), join(data, 'export.jsonl')]
  const lines = (await run('export', '--data', data)).output
  const logged = JSON.stringify({ level: 30, msg: 'audit anchor', anchor })
  writeFileSync(anchors, `Listening on http://127.0.0.1:8080\n${logged}\n{"msg":"other"}\n`)
  writeFileSync(exported, `${lines.join('\n')}\n${lines[0]}\n`)
  const files = ['--anchor', anchors, '--export', exported]
  expect(await run('verify', '--data', data, ...files)).toMatchObject({
    code: 0,
    output: [
      `${anchors}: 1 anchored head compared: all match the database`,
      `${exported}: 3 exported records compared: all match the database`,
      sealedSince,
      '3 records checked: all unchanged',
    ],
  })
  writeFileSync(exported, lines.join('\n').replace('a@b', 'x@y'))
  writeFileSync(anchors, `${JSON.stringify(anchor).replace('"number":3', '"number":9')}\n{"time":"20`)
  const { code, output } = await run('verify', '--data', data, ...files)
  expect(code).toBe(1)
  expect(output).toContain(
    `${exported}: differs: chain 0, record 1 (the database has another record in its place, or none)`,
  )
  expect(output).toContain(`${anchors}: invalid: an anchor was changed, or the key of this audit did not sign it`)
  expect(output).toContain(`${anchors}: invalid: line 2 is not JSON: the file is damaged, or not the right file`)
  writeFileSync(exported, `${lines.join('\n')}\ntorn`)
  expect((await run('verify', '--data', data, '--export', exported)).output).toContain(
    `${exported}: invalid: line 4 is not JSON: the file is damaged, or not the right file`,
  )
  writeFileSync(anchors, 'Listening on http://127.0.0.1:8080\n')
  expect((await run('verify', '--data', data, '--anchor', anchors)).errors[0]).toContain('has no anchor;')
  expect(await run('verify', '--data', data, '--anchor', join(data, 'none'))).toMatchObject({
    code: 1,
    errors: [`gatehouse audit: ${join(data, 'none')} does not exist`],
  })
})

test('tail prints only the workflow if a refused request has no run', async () => {
  const data = await dataFolder([row('a', { action: 'refuse', workflow: { id: '', name: 'join' }, reason: 'late' })])
  expect((await run('tail', '--data', data)).output).toEqual([expect.stringContaining('by boss, join, reason: late')])
})

test('a missing database is reported, and none is created', async () => {
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
  [['prune', '--before', '2999-01-01', '--yes'], /in the future/],
  [[], /missing argument: one of verify, tail/],
])('%j is wrong usage', async (args, problem) => {
  const { code, errors } = await run(...args)
  expect(code).toBe(2)
  expect(errors[0]).toMatch(problem)
})

test('every command closes a data folder and database that other users can read', async () => {
  const data = await dataFolder([row('a')])
  const database = join(data, 'gatehouse.db')
  chmodSync(data, 0o755)
  chmodSync(database, 0o644)
  expect((await run('verify', '--data', data)).code).toBe(0)
  expect([data, database].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(['700', '600'])
})
