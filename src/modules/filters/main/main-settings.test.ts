import { expect, test } from 'vitest'
import { portalPages } from '#contract/portal.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/fake-parse.ts'
import { mainParams } from '#testing/main-fixture.ts'
import { parseMain } from './main-settings.ts'

function complaints(hidePages: readonly string[]): string[] {
  const issues = noIssues()
  parseMain(fakeParams({ ...mainParams, hidePages }), issues, fakeParseContext())
  return issueTexts(issues.list)
}

test('hiding a page that does not exist is only a warning', () => {
  expect(complaints([...portalPages])).toEqual([])
  expect(complaints(['token', 'tokens', 'switchboard'])).toEqual([
    'warning params.hidePages.1: "hidePages": there is no page "tokens" (did you mean "token"?)',
    'warning params.hidePages.2: "hidePages": there is no page "switchboard"',
  ])
})
