import { expect, test } from 'vitest'
import type { JournalQuery, StoredJournalEntry } from '#features/scim/journal/journal-entry.ts'
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

test('tokens of clients are shown with their state, and never their text', async () => {
  const token = { id: 't1', client: 'okta', name: 'default', created: new Date(now - 5) }
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)' },
    now: () => now,
    clientTokens: {
      list: async () => [
        { ...token, expires: new Date(now + 1000), lastUsed: new Date(now) },
        { ...token, id: 't2' },
      ],
      verify: async () => undefined,
    },
  })
  const { body } = await send('GET', '/admin/scim-tokens', undefined, admin)
  const shown = { client: 'okta', name: 'default', created: '2030-01-01T23:59:59.995Z' }
  expect(body).toEqual({
    tokens: [
      {
        ...shown,
        id: 't1',
        state: 'expiring',
        expires: '2030-01-02T00:00:01.000Z',
        lastUsed: '2030-01-02T00:00:00.000Z',
      },
      { ...shown, id: 't2', state: 'valid' },
    ],
  })
  await expect(send('GET', '/admin/scim-tokens', undefined, someone('ada', ['people']))).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
  })
})
