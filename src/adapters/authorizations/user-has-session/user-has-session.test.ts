import { expect, test } from 'vitest'
import { noSessions } from '#testing/login/no-sessions.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import userHasSession from './user-has-session.ts'

test('only users with a session pass', async () => {
  const issues = noIssues()
  const given = { target: 'k8s', namespace: 'openunison' }
  const prepared = userHasSession.prepare(fakeParams(given), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const [ann, eve] = [subject('uid=ann,o=x'), subject('uid=eve,o=x')]
  const time = new Date(0)
  const about = { id: '1', application: 'portal', chain: 'login', level: 20, address: '', agent: '' }
  const view = { ...about, started: time, lastUsed: time, expires: time }
  const ofUser = async (user: string) => (user === ann.identity ? [view] : [])
  const host = fakeModuleHost({ sessions: { ...noSessions, ofUser } })
  const { isAuthorized } = await prepared.create(host)
  expect([await isAuthorized(ann, []), await isAuthorized(eve, [])]).toEqual([true, false])
})
