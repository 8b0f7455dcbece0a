import { expect, test } from 'vitest'
import { expectDescribedBy } from '#testing/gateway/api-contract.ts'
import { noSessions } from '#testing/login/no-sessions.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import checkSession from './check-session.ts'

async function ask(minutes: number | undefined, method = 'GET') {
  const prepared = checkSession.prepare(fakeParams({ applicationName: 'portal' }), noIssues(), fakeParseContext())
  expect(prepared.leavesSession).toBe(true)
  const sessions = { ...noSessions, minutesLeft: async (name: string) => (name === 'portal' ? minutes : undefined) }
  const filter = await prepared.create(fakeModuleHost({ sessions }))
  const exchange = {
    request: fakeRequest({ method }),
    application: 'check',
    mount: '/check',
    pathInfo: '',
    subject: subject('uid=ada,o=Tremolo'),
  }
  const answer = await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
  expectDescribedBy(prepared, method, '', answer)
  return answer
}

test('returns the minutes that are left', async () => {
  expect(await ask(14)).toMatchObject({ status: 200, body: '{"minsLeft":14}\n' })
  expect(await ask(0)).toMatchObject({ body: '{"minsLeft":0}\n' })
})

test('is a 401 without a session, and a 405 for other methods', async () => {
  await expect(ask(undefined)).rejects.toMatchObject({ status: 401 })
  await expect(ask(14, 'POST')).rejects.toMatchObject({ status: 405 })
})
