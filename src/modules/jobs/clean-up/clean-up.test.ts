import { expect, test } from 'vitest'
import { fakeJobHost, jobContext } from '#testing/fake-job-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/fake-parse.ts'
import cleanUp from './clean-up.ts'

async function asked(params: ParamValues): Promise<unknown[]> {
  const issues = noIssues()
  const prepared = cleanUp.prepare(fakeParams(params), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const host = fakeJobHost()
  expect(await (await prepared.create(host)).run(jobContext())).toEqual({ runs: 7 })
  return host.asked
}

test('the audit is kept for ever unless a number of days is said', async () => {
  const usual = { runs: 90, mails: 30, idempotencyKeys: 7, jobRuns: 90 }
  expect(await asked({})).toEqual([['cleanUp', usual]])
  expect(await asked({ auditDays: '0' })).toEqual([['cleanUp', usual]])
  expect(await asked({ auditDays: '400', runsDays: '5' })).toEqual([['cleanUp', { ...usual, runs: 5, audit: 400 }]])
})

test('nothing is forgotten at once', () => {
  const issues = noIssues()
  cleanUp.prepare(fakeParams({ runsDays: '0', auditDays: '-1' }), issues, fakeParseContext())
  expect(issues.list).toHaveLength(2)
})
