import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { JournalQuery, StoredJournalEntry } from '#features/scim/journal/journal-entry.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import { openMain, someone } from '#testing/modules/main-fixture.ts'

const admin = someone('root', ['people', 'admins'])
const now = Date.UTC(2030, 0, 2)

const entry = (id: number): StoredJournalEntry => ({
  id,
  journal: 'scim-people',
  time: new Date(now),
  requestId: `r-${id}`,
  caller: 'okta',
  method: 'POST',
  path: '/Users',
  status: 409,
  keyword: 'uniqueness',
  millis: 3,
  workflows: ['run-1', 'run-2'],
  ...(id === 1 ? { dryRun: true } : {}),
})

async function open() {
  const asked: JournalQuery[] = []
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)', scimJournals: ['scim-people', 'scim-crm'] },
    now: () => now,
    readJournal: async (query) => {
      asked.push(query)
      return query.after === undefined ? { entries: [entry(2)], next: '2' } : { entries: [entry(1)] }
    },
  })
  return { asked, get: (query: string) => send('GET', `/admin/scim-journal${query}`, undefined, admin) }
}

test('calls are found by gateway, outcome, status and time, in the journals that the portal shows', async () => {
  const { asked, get } = await open()
  const { body } = await get('?gateway=scim-people&gateway=secret&failed=true&status=409&since=1h&limit=5')
  expect(body).toMatchObject({ entries: [{ id: 2, gateway: 'scim-people', scimType: 'uniqueness' }], next: '2' })
  await get('?gateway=&status=&after=2')
  expect(asked).toEqual([
    { journals: ['scim-people'], failed: true, status: 409, since: new Date(now - 3_600_000), limit: 5 },
    { journals: ['scim-people', 'scim-crm'], limit: 100, after: '2' },
  ])
  for (const query of ['?status=1', '?failed=maybe', '?since=then', '?format=pdf', '?limit=501', '?caller=okta']) {
    await expect(get(query)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
})

test('an export has every page', async () => {
  const { get } = await open()
  const { text, headers } = await get('?format=csv')
  expect(headers).toMatchObject({ 'content-disposition': 'attachment; filename="scim-journal.csv"' })
  expect(text.trim().split('\r\n')).toEqual([
    'time,gateway,client,method,path,status,scimType,error,millis,requestId,workflows,dryRun',
    expect.stringMatching(
      /^2030-01-02T00:00:00.000Z,scim-people,okta,POST,\/Users,409,uniqueness,,3,r-2,run-1 run-2,false$/,
    ),
    expect.stringMatching(/r-1,run-1 run-2,true$/),
  ])
})

const operator = someone('root', ['people', 'admins', 'operators'])

/** The console over the tokens of a real database. */
async function openTokens() {
  const { one, two } = await openStores(`sqlite:${join(temporaryFolder(), 'gatehouse.db')}`)
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)', operators: 'filter;(groups=operators)' },
    now: Date.now,
    scimClients: { tokens: one.clientTokens, tenants: one.tenants, urls: [], named: new Set() },
  })
  const place = { host: 'idm.test', profile: 'tolerant', createdBy: 'root' } as const
  await one.tenants.add({ ...place, name: 'acme', path: '/tenants/acme/scim' })
  return { one, two, send }
}

test('a token is created, shown once, listed with its state and revoked', async () => {
  const { one, two, send } = await openTokens()
  const wanted = { client: 'acme', name: 'default', expiresInDays: 10 }
  const { status, body: created } = await send('POST', '/admin/scim-tokens', wanted, operator)
  expect([status, created]).toEqual([201, expect.objectContaining({ state: 'expiring', createdBy: 'root' })])
  expect(await two.clientTokens.find(created.text)).toMatchObject({ client: 'acme', createdBy: 'root' })
  const list = async (query = '') => (await send('GET', `/admin/scim-tokens${query}`, undefined, admin)).body.tokens
  expect(await list('?client=acme')).toMatchObject([{ id: created.id, state: 'expiring' }])
  expect(await list('?client=okta')).toEqual([])
  expect(JSON.stringify(await list())).not.toContain(created.text)
  const revoke = () => send('POST', `/admin/scim-tokens/${created.id}/revoke`, { reason: 'It leaked' }, operator)
  expect((await revoke()).body).toMatchObject({ state: 'revoked', revokedBy: 'root' })
  expect(await two.clientTokens.find(created.text)).toBeUndefined()
  await expect(revoke()).rejects.toMatchObject({ code: 'CONFLICT' })
  const { rows } = await one.audit.list({ limit: 5 })
  expect(rows).toMatchObject([
    { action: 'delete', subject: 'acme', value: 'default', requestor: 'root', reason: 'It leaked' },
    { action: 'add', subject: 'acme', value: 'default', requestor: 'root' },
  ])
  expect(JSON.stringify(rows)).not.toContain(created.text)
})

test('tokens are changed by operators only, and with names that can be used', async () => {
  const { one, send } = await openTokens()
  const create = (body: object, as = operator) => send('POST', '/admin/scim-tokens', body, as)
  const wanted = { client: 'acme', name: 'default' }
  const { body } = await create(wanted)
  expect(body).toMatchObject({ state: 'valid', expires: expect.any(String) })
  const lasting = await create({ ...wanted, name: 'lasting', expiresInDays: null })
  expect(lasting.body).not.toHaveProperty('expires')
  await expect(create(wanted)).rejects.toMatchObject({ code: 'CONFLICT' })
  // Clients of the configuration may change what approvals protect.
  await expect(create({ ...wanted, client: 'okta' })).rejects.toMatchObject({ code: 'CONFLICT' })
  for (const wrong of [
    { client: 'acme', name: '../a' },
    { client: 'acme', name: 'a b' },
    { client: 'acme', name: 'a', expiresInDays: 0 },
    { client: 'acme', name: 'a', text: 'mine' },
    { client: 'acme' },
  ]) {
    await expect(create(wrong)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
  await expect(create({ ...wanted, name: 'other' }, admin)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const revoke = (id: string, as = operator) =>
    send('POST', `/admin/scim-tokens/${id}/revoke`, { reason: 'It leaked' }, as)
  await expect(revoke(body.id, admin)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  await expect(send('POST', `/admin/scim-tokens/${body.id}/revoke`, {}, operator)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
  })
  for (const id of ['nothing', '%00', 'x'.repeat(500)]) {
    await expect(revoke(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  }
  await expect(send('GET', '/admin/scim-tokens', undefined, someone('ada', ['people']))).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
  })
  expect(await one.clientTokens.list()).toMatchObject([{ name: 'default' }, { name: 'lasting' }])
})
