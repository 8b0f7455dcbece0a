import { describe, expect, test } from 'vitest'
import type { Subject } from '#identity/subject.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import authorization from './authorization.ts'

const prepare = (rules: readonly string[]) => {
  const issues = noIssues()
  const prepared = authorization.prepare(fakeParams({ rules }), fakeParams({}), issues, fakeParseContext())
  return { prepared, problems: issueTexts(issues.list) }
}

async function begin(rules: readonly string[], caller: Subject | undefined, allowed: boolean) {
  const asked: Rule[] = []
  const mechanism = await prepare(rules).prepared.create(
    fakeModuleHost({
      authorize: (_subject, given) => {
        asked.push(...given)
        return { allowed, verdicts: [] }
      },
    }),
  )
  const outcome = await mechanism.begin({ request: fakeRequest({}), subject: caller, root: 'o=Tremolo' })
  return { outcome, asked }
}

describe('the authenticated caller', () => {
  const caller = subject('uid=alice,o=Tremolo')

  test('passes when a rule does', async () => {
    const { outcome, asked } = await begin(['dn;o=Tremolo', 'filter;(a=b;c)'], caller, true)
    expect(outcome).toEqual({ kind: 'passed' })
    expect(asked.map(({ scope, constraint }) => [scope, constraint])).toEqual([
      ['dn', 'o=Tremolo'],
      ['filter', '(a=b;c)'],
    ])
  })

  test('gets 403 when no rule passes', async () => {
    expect((await begin(['dn;o=Tremolo'], caller, false)).outcome).toMatchObject({ kind: 'rejected', status: 403 })
  })

  test('is required: a request without one is rejected whatever the rules are', async () => {
    const { outcome, asked } = await begin(['dn;o=Tremolo'], undefined, true)
    expect(outcome).toMatchObject({ kind: 'rejected' })
    expect(asked).toEqual([])
  })
})

test('invalid rules are reported, each at its position', () => {
  expect(prepare(['dn;o=Tremolo', 'o=Tremolo', 'DN;o=Tremolo', 'dn;x', 'filter;(a=']).problems).toEqual([
    expect.stringMatching(/^error params\.rules\.1: "rules": must be "scope;constraint"/),
    expect.stringMatching(/^error params\.rules\.2: "rules": must be "scope;constraint"/),
    expect.stringMatching(/^error params\.rules\.3: /),
    expect.stringMatching(/^error params\.rules\.4: /),
  ])
  expect(prepare([]).problems).toEqual(['error params.rules: parameter "rules" is required'])
})
