import { expect, test } from 'vitest'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeJobHost, jobContext } from '#testing/workflows/fake-job-host.ts'
import mailOutcomes from './mail-outcomes.ts'

function prepare(params: ParamValues) {
  const issues = noIssues()
  return { prepared: mailOutcomes.prepare(fakeParams(params), issues, fakeParseContext()), issues }
}

async function asked(params: ParamValues) {
  const { prepared, issues } = prepare(params)
  expect(issueTexts(issues.list)).toEqual([])
  const host = fakeJobHost()
  expect(await (await prepared.create(host)).run(jobContext())).toEqual({ mails: 1 })
  return host.asked
}

const until = new Date('2025-03-10T02:00:00Z')

test('looks back from its due time, so that every attempt sees the same outcomes', async () => {
  expect(await asked({})).toEqual([
    [
      'mailOutcomes',
      {
        outcomes: ['completed', 'expired', 'failed', 'cancelled', 'incident'],
        since: new Date('2025-03-09T02:00:00Z'),
        until,
        mailAttribute: 'mail',
        limit: 10_000,
        signal: expect.any(AbortSignal),
      },
    ],
  ])
})

test('a summary has one key for each due time', async () => {
  const params = { summary: 'true', hours: '1', outcomes: ['denied'], notifier: 'n', mailAttributeName: 'email' }
  expect(await asked(params)).toMatchObject([
    [
      'mailOutcomes',
      {
        outcomes: ['denied'],
        since: new Date('2025-03-10T01:00:00Z'),
        until,
        summary: 'nightly/2025-03-10T02:00:00.000Z',
        notifier: 'n',
        mailAttribute: 'email',
      },
    ],
  ])
})

test('reports unknown outcomes', () => {
  expect(issueTexts(prepare({ outcomes: ['done'], hours: '0' }).issues.list)).toHaveLength(2)
})
