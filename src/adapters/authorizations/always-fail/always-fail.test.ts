import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { entryIdentity } from '#identity/identity.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import alwaysFail from './always-fail.ts'

test('no user passes', async () => {
  const prepared = alwaysFail.prepare(fakeParams({}), noIssues(), fakeParseContext())
  const authorization = await prepared.create(fakeModuleHost())
  const subject = {
    dn: Dn.parse('uid=root,o=Tremolo'),
    identity: entryIdentity('test', 'root'),
    uid: 'root',
    attributes: new Attributes(),
    level: 99,
    chain: 'x',
  }
  expect(await authorization.isAuthorized(subject, [])).toBe(false)
})

test('it takes no parameters', () => {
  const issues = noIssues()
  alwaysFail.prepare(fakeParams({ allow: 'all' }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual(['error params.allow: unknown parameter "allow"'])
})
