import { expect, test } from 'vitest'
import type { Rule } from '#sdk/rule/rule.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import authorize from './authorize.ts'

function prepare(params: ParamValues) {
  const issues = noIssues()
  const prepared = authorize.prepare(fakeParams(params), issues, fakeParseContext())
  return { prepared, issues: issueTexts(issues.list) }
}

async function ask(params: ParamValues, decide: (rules: readonly Rule[]) => boolean) {
  const { prepared } = prepare(params)
  const host = {
    ...fakeModuleHost(),
    authorize: async (_subject: unknown, rules: readonly Rule[]) => ({ allowed: decide(rules) }),
  }
  const filter = await prepared.create(host as never)
  const exchange = {
    request: fakeRequest({}),
    application: 'app',
    mount: '/app',
    pathInfo: '',
    subject: subject('uid=ada,o=Tremolo'),
  }
  return filter.handle(exchange, async () => ({ status: 200, headers: {}, body: 'next' }))
}

const rules = ['filter;(department=engineering)', 'dn;ou=staff,o=Tremolo']

test('only a caller whom its rules allow reaches the next filter', async () => {
  const seen: (readonly Rule[])[] = []
  const allowed = await ask({ rules }, (asked) => seen.push(asked) > 0)
  expect(allowed).toMatchObject({ status: 200, body: 'next' })
  expect(seen[0]?.map(({ scope, constraint }) => `${scope} ${constraint}`)).toEqual([
    'filter (department=engineering)',
    'dn ou=staff,o=Tremolo',
  ])
  await expect(ask({ rules }, () => false)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
})

test('a decision that fails lets no one pass', async () => {
  const failing = ask({ rules }, () => {
    throw new Error('the directory is away')
  })
  await expect(failing).rejects.toThrow('the directory is away')
})

test('rules are required and checked', () => {
  expect(prepare({}).issues).toEqual([expect.stringContaining('"rules" is required')])
  expect(prepare({ rules: '' }).issues).toEqual([expect.stringContaining('"rules" is required')])
  expect(prepare({ rules: 'anyone' }).issues).toEqual([expect.stringContaining('must be "scope;constraint"')])
  expect(prepare({ rules: 'filter;(uid=' }).issues).toHaveLength(1)
  expect(prepare({ rules, azFail: 'force-logout', azSuccess: 'headers' }).issues).toEqual([
    'warning params.azSuccess: "azSuccess" is not used: use the results of the URL',
    'warning params.azFail: "azFail" is not used: a caller whom no rule allows gets 403',
  ])
})
