import { expect, test } from 'vitest'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import type { JournalQuery, StoredJournalEntry } from './journal-entry.ts'
import scimJournal from './journal-filter.ts'

const now = Date.UTC(2030, 0, 2)
const line: StoredJournalEntry = {
  id: 7,
  journal: 'scim-people',
  time: new Date(now),
  requestId: 'r-1',
  caller: 'idp',
  method: 'GET',
  path: '/scim/Users/1',
  status: 404,
  error: 'There is no such user.',
  keyword: 'noTarget',
  millis: 2,
  workflows: [],
}

async function ask(query: string, params: ParamValues = {}, method = 'GET', pathInfo = '') {
  const queries: JournalQuery[] = []
  const prepared = scimJournal.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const readJournal = async (asked: JournalQuery) => {
    queries.push(asked)
    return { entries: [line], next: '7' }
  }
  const filter = await prepared.create(fakeModuleHost({ now: () => now, readJournal }))
  const response = await filter.handle(
    {
      request: fakeRequest({ method, url: `https://gw.example.com/journal${query}` }),
      application: 'journal',
      mount: '/journal',
      pathInfo,
      subject: subject('uid=admin,o=test'),
    },
    async () => {
      throw new Error('there is nothing behind this filter')
    },
  )
  expectDescribedBy(prepared, method, pathInfo, response)
  return { response, query: queries[0] }
}

test('a page is JSON, with the start of the next one', async () => {
  const { response } = await ask('')
  expect(response.headers).toEqual({ 'content-type': 'application/json; charset=utf-8' })
  const { journal: gateway, keyword: scimType, ...rest } = line
  expect(JSON.parse(String(response.body))).toEqual({
    entries: [{ gateway, scimType, ...rest, time: '2030-01-02T00:00:00.000Z' }],
    next: '7',
  })
  expect((await ask('', {}, 'HEAD')).response.body).toBeUndefined()
})

test('the query narrows', async () => {
  expect((await ask('')).query).toEqual({ limit: 100 })
  expect((await ask('?gateway=a&gateway=b&failed=true&status=404&since=1h&limit=5&after=9')).query).toEqual({
    journals: ['a', 'b'],
    failed: true,
    status: 404,
    since: new Date(now - 3600_000),
    limit: 5,
    after: '9',
  })
})

test('only the configured journals are shown, whatever the query names', async () => {
  const params = { gateway: ['a', 'b'] }
  expect((await ask('', params)).query).toEqual({ journals: ['a', 'b'], limit: 100 })
  expect((await ask('?gateway=b&gateway=c', params)).query).toEqual({ journals: ['b'], limit: 100 })
  expect((await ask('?gateway=c', params)).query).toEqual({ journals: [], limit: 100 })
})

test.each([
  '?failed=yes',
  '?status=20',
  '?status=x',
  '?since=yesterday',
  '?limit=0',
  '?limit=501',
  '?gatway=a',
  '?__proto__=x',
])('%s is rejected', async (query) => {
  await expect(ask(query)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('other methods and paths are rejected', async () => {
  await expect(ask('', {}, 'DELETE')).rejects.toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
  await expect(ask('', {}, 'GET', '/x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})
