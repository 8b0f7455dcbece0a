import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeJobHost, jobContext } from '#testing/workflows/fake-job-host.ts'
import remindApprovers from './remind-approvers.ts'

function prepare(params: ParamValues) {
  const issues = noIssues()
  return { prepared: remindApprovers.prepare(fakeParams(params), issues, fakeParseContext()), issues }
}

test('uses the same key for every run of a due time', async () => {
  const { prepared, issues } = prepare({ message: '%L waits', days: '3', mailAttributeName: 'email' })
  expect(issueTexts(issues.list)).toEqual([])
  const host = fakeJobHost()
  const job = await prepared.create(host)
  expect(await job.run(jobContext())).toEqual({ approvals: 1 })
  await job.run(jobContext({ attempt: 2 }))
  const reminder = {
    days: 3,
    key: 'nightly/2025-03-10T02:00:00.000Z',
    message: '%L waits',
    mailAttribute: 'email',
    limit: 1000,
  }
  expect(host.asked).toEqual([
    ['remind', reminder],
    ['remind', reminder],
  ])
})

test('reports invalid parameters', () => {
  expect(issueTexts(prepare({ days: '-1' }).issues.list)).toEqual([
    'error params.days.0: "days": must be a whole number from 0 to 3650, not "-1"',
  ])
})
