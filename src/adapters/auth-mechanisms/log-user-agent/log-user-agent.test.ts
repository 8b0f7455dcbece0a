import { expect, test } from 'vitest'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import logUserAgent from './log-user-agent.ts'

test('lets every login pass, and says that it has no effect', async () => {
  const issues = noIssues()
  const prepared = logUserAgent.prepare(fakeParams({}), fakeParams({}), issues, fakeParseContext())
  expect(issues.list.map(({ level, message }) => [level, message])).toEqual([
    ['warning', expect.stringContaining('auth.LogUserAgent has no effect here')],
  ])
  const mechanism = await prepared.create(fakeModuleHost())
  const attempt = { request: fakeRequest({}), subject: undefined, root: 'o=Tremolo' }
  expect(await mechanism.begin(attempt)).toEqual({ kind: 'passed' })
})
