import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeJobHost, jobContext } from '#testing/workflows/fake-job-host.ts'
import mailDigest from './mail-digest.ts'

async function asked(params: ParamValues) {
  const issues = noIssues()
  const prepared = mailDigest.prepare(fakeParams(params), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const host = fakeJobHost()
  expect(await (await prepared.create(host)).run(jobContext())).toEqual({ mails: 1 })
  return host.asked
}

test('looks back from its due time, so that every attempt sees the same outcomes', async () => {
  expect(await asked({})).toEqual([
    [
      'mailDigests',
      {
        since: new Date('2025-03-07T02:00:00Z'),
        until: new Date('2025-03-10T02:00:00Z'),
        mailAttribute: 'mail',
        languageAttribute: 'preferredLanguage',
        limit: 100_000,
        signal: expect.any(AbortSignal),
      },
    ],
  ])
})

test('passes its parameters on', async () => {
  const params = { hours: '24', mailAttributeName: 'email', languageAttributeName: 'lang', notifier: 'n', limit: '5' }
  expect(await asked(params)).toMatchObject([
    [
      'mailDigests',
      {
        since: new Date('2025-03-09T02:00:00Z'),
        mailAttribute: 'email',
        languageAttribute: 'lang',
        notifier: 'n',
        limit: 5,
      },
    ],
  ])
})
