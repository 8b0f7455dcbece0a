import { expect, test, vi } from 'vitest'
import { AuditReader } from '#audit/audit-reader.ts'
import { AuditStore } from '#audit/store/audit-store.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'

const admin = someone('root', ['people', 'admins'])
const now = Date.UTC(2030, 0, 2)

const entry = (subject: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  id: newId(),
  time: new Date(now),
  requestor: 'boss',
  subject,
  workflow: { id: 'run-1', name: 'join' },
  target: 'people',
  kind: 'attribute',
  action: 'add',
  attribute: 'mail',
  value: 'a@example.com',
  ...more,
})

async function open(entries: readonly AuditEntry[] = []) {
  const database = memoryDatabase()
  const store = new AuditStore(database)
  for (const one of entries) await store.append([one])
  const audit = new AuditReader({ replica: 'here', audit: store, clock: systemClock, log: silentLogger })
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)' },
    now: () => now + 1000,
    audit,
  })
  const get = (path: string) => send('GET', `/admin/audit${path}`, undefined, admin)
  return { store, audit, database, send, get }
}

test('administrators find entries by each filter, and page through them', async () => {
  const { get, send } = await open([
    entry('ada'),
    entry('bob', { requestor: 'hr', target: 'crm', requestId: 'r-1' }),
    entry('cy', { workflow: { id: 'run-2', name: 'leave' }, time: new Date(now - 3_600_000) }),
  ])
  await expect(send('GET', '/admin/audit')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const found = async (query: string) =>
    (await get(query)).body.audit.map(({ subject }: { readonly subject: string }) => subject)
  expect(await found('')).toEqual(['cy', 'bob', 'ada'])
  expect(await found('?requestor=HR')).toEqual(['bob'])
  expect(await found('?subject=Ada')).toEqual(['ada'])
  expect(await found('?workflow=run-2')).toEqual(['cy'])
  expect(await found('?target=crm')).toEqual(['bob'])
  expect(await found('?requestId=r-1')).toEqual(['bob'])
  expect(await found('?from=1m')).toEqual(['bob', 'ada'])
  expect(await found(`?until=${new Date(now).toISOString()}`)).toEqual(['cy'])
  expect(await found('?subject=&target=')).toEqual(['cy', 'bob', 'ada'])
  const first = await get('?limit=2')
  expect(first.body.audit).toHaveLength(2)
  expect(await found(`?limit=2&after=${first.body.next}`)).toEqual(['ada'])
})

test('wrong parameters are rejected with what is wrong', async () => {
  const { get } = await open()
  const cases = [
    ['?from=yesterday', 'from must be'],
    ['?subjekt=a', 'no query parameter "subjekt"'],
    ['?limit=0', 'limit must be'],
    ['?format=xml', 'format must be'],
  ] as const
  for (const [query, text] of cases) {
    await expect(get(query)).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: expect.stringContaining(text) })
  }
  await expect(get('?after=1;drop')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('secrets are left out, and long values are cut', async () => {
  const { get } = await open([
    entry('a', { attribute: 'userPassword', value: 'hunter2' }),
    entry('b', { value: 'x'.repeat(5000), reason: 'sent eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.x' }),
  ])
  const { body, text } = await get('')
  expect(text).not.toContain('hunter2')
  expect(body.audit[1]).not.toHaveProperty('value')
  expect(body.audit[0]).toMatchObject({ value: `${'x'.repeat(1000)}…`, reason: 'sent [token]' })
})

test('an export is a file of every matching entry, in which formulas stay text', async () => {
  const { get } = await open([entry('ada'), entry('bob', { value: '=1+1' })])
  const { text, headers } = await get('?format=csv&target=people')
  expect(headers).toMatchObject({ 'content-disposition': 'attachment; filename="audit.csv"' })
  const lines = text.trim().split('\r\n')
  expect(lines).toHaveLength(3)
  expect(lines[0]).toMatch(/^time,requestor,caller,subject/)
  expect(lines[1]).toContain("'=1+1")
})

test('an export has the login and the display name of each user', async () => {
  const { get } = await open([entry('bob', { caller: 'ann' })])
  const [head = '', row = ''] = (await get('?format=csv')).text.trim().split('\r\n')
  expect(head).toMatch(/,requestorName,callerName,subjectName$/)
  // The requester is not in the directory.
  expect(row).toMatch(/,boss,ann,bob,.*,boss,ann Doe,bob Doe$/)
})

test('a verification runs in the background, one at a time, and the audit records who ran it and how it ended', async () => {
  const { get, send, store } = await open(Array.from({ length: 1200 }, (_, i) => entry(`u${i}`)))
  expect((await get('/verification')).body).toEqual({ state: 'none' })
  const start = () => send('POST', '/admin/audit/verification', undefined, admin)
  const { status, body } = await start()
  expect([status, body]).toMatchObject([
    202,
    { state: 'running', replica: 'here', by: 'root', checked: 0, total: 1200 },
  ])
  await expect(start()).rejects.toMatchObject({ code: 'CONFLICT' })
  await vi.waitFor(async () => expect((await get('/verification')).body).toHaveProperty('recorded', true), 30_000)
  expect((await get('/verification')).body).toMatchObject({
    state: 'ended',
    checked: 1200,
    report: { authenticated: false, problems: [] },
  })
  expect((await store.list({ target: 'audit', limit: 10 })).rows).toMatchObject([
    {
      requestor: 'root',
      kind: 'audit',
      attribute: 'verification',
      value: 'records: 1200, no problems, not authenticated',
    },
  ])
  expect((await start()).status).toBe(202)
})

test('a changed record is named, and a walk that could not finish is no success', async () => {
  const { audit, get, database } = await open([entry('a'), entry('b')])
  await database.transaction((tx) =>
    tx.run({ sql: "update audit set subject = 'x' where chain_seq = 2", params: [], name: undefined }),
  )
  const ended = async () => {
    await audit.startVerification('root')
    await vi.waitFor(() => expect(audit.verification()?.recorded).toBeDefined(), 30_000)
    return (await get('/verification')).body
  }
  expect(await ended()).toMatchObject({
    state: 'ended',
    report: { problems: [{ kind: 'changed', chain: 0, number: 2 }] },
  })
  await audit.startVerification('root')
  database.failure = new Error('away')
  await vi.waitFor(() => expect(audit.verification()?.recorded).toBe(false), 30_000)
  const { body } = await get('/verification')
  expect(body).toMatchObject({ state: 'failed', recorded: false })
  expect(body).not.toHaveProperty('report')
})

test('a gateway that stops does not wait for the whole audit', async () => {
  const { audit, store } = await open(Array.from({ length: 2000 }, (_, i) => entry(`u${i}`)))
  await audit.startVerification('root')
  await audit.close()
  expect(audit.verification()).toMatchObject({ state: 'failed', recorded: true })
  expect((await store.list({ target: 'audit', limit: 1 })).rows).toMatchObject([{ action: 'refuse' }])
  await expect(audit.startVerification('root')).rejects.toMatchObject({ code: 'CONFLICT' })
})
