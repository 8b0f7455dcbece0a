import { expect, test } from 'vitest'
import { portalPages } from '#features/portal/contract/portal.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { mainParams } from '#testing/modules/main-fixture.ts'
import { parseMain } from './main-settings.ts'

function read(params: ParamValues) {
  const issues = noIssues()
  const { given } = parseMain(fakeParams({ ...mainParams, ...params }), issues, fakeParseContext())
  return { given, issues: issueTexts(issues.list) }
}

const complaints = (hidePages: readonly string[]) => read({ hidePages }).issues

test('hiding a page that does not exist is only a warning', () => {
  expect(complaints([...portalPages])).toEqual([])
  expect(complaints(['token', 'tokens', 'switchboard'])).toEqual([
    'warning params.hidePages.1: "hidePages": there is no page "tokens" (did you mean "token"?)',
    'warning params.hidePages.2: "hidePages": there is no page "switchboard"',
  ])
})

test.each([
  ['yes', 'YES'],
  ['No', 'NO'],
  ['TRUE', 'YES'],
  ['false', 'NO'],
])('users may request for others: %s', (written, meant) => {
  const { given, issues } = read({ canDelegate: written, canPreApprove: written.toUpperCase() })
  expect([given.canDelegate, given.canPreApprove, issues]).toEqual([meant, meant, []])
  expect(read({ canDelegate: 'maybe' }).issues).toEqual([expect.stringContaining('must be one of NO, YES, CUSTOM')])
})

test('a workflow is needed only if profiles can be changed', () => {
  expect(read({ canEditUser: 'false', workflowName: '' }).issues).toEqual([])
  expect(read({ canEditUser: 'true', workflowName: '' }).issues).toEqual([
    expect.stringContaining('"workflowName" is required where canEditUser is "true"'),
  ])
})
