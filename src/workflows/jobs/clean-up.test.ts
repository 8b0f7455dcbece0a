import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeJobHost, jobContext } from '#testing/workflows/fake-job-host.ts'
import cleanUp from './clean-up.ts'

async function asked(params: ParamValues): Promise<unknown[]> {
  const issues = noIssues()
  const prepared = cleanUp.prepare(fakeParams(params), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const host = fakeJobHost()
  expect(await (await prepared.create(host)).run(jobContext())).toEqual({ runs: 7 })
  return host.asked
}

test('the audit is kept forever unless a number of days is configured', async () => {
  const usual = { runs: 90, mails: 30, idempotencyKeys: 7, jobRuns: 90 }
  expect(await asked({})).toEqual([['cleanUp', usual]])
  expect(await asked({ auditDays: '0' })).toEqual([['cleanUp', usual]])
  expect(await asked({ auditDays: '400', runsDays: '5' })).toEqual([
    ['cleanUp', { ...usual, runs: 5, audit: { days: 400 }, tokens: { days: 400 } }],
  ])
})

test('token decisions have their own limits of days and number', async () => {
  const usual = { runs: 90, mails: 30, idempotencyKeys: 7, jobRuns: 90 }
  expect(await asked({ tokenAuditDays: '30', tokenAuditRecords: '1000000' })).toEqual([
    ['cleanUp', { ...usual, tokens: { days: 30, records: 1_000_000 } }],
  ])
  expect(await asked({ auditDays: '400', auditRecords: '5', tokenAuditDays: '30' })).toEqual([
    ['cleanUp', { ...usual, audit: { days: 400, records: 5 }, tokens: { days: 30 } }],
  ])
})

test('nothing can be deleted at once', () => {
  const issues = noIssues()
  cleanUp.prepare(fakeParams({ runsDays: '0', auditDays: '-1' }), issues, fakeParseContext())
  expect(issues.list).toHaveLength(2)
})
