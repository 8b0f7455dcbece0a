import { expect, test } from 'vitest'
import anonymous from '#modules/auth-mechanisms/anonymous/anonymous.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/fake-parse.ts'
import { fakeRequest } from '#testing/fake-request.ts'

const begin = async (params: ParamValues, ...roots: string[]) => {
  const prepared = anonymous.prepare(fakeParams(params), fakeParams({}), noIssues(), fakeParseContext())
  const mechanism = await prepared.create(fakeModuleHost())
  return Promise.all(roots.map((root) => mechanism.begin({ request: fakeRequest({}), subject: undefined, root })))
}

test('every caller is the same subject', async () => {
  const [first, second] = await begin({ userName: 'guest, ou=admins' }, 'o=Tremolo', 'o=Tremolo')
  expect(first).toBe(second)
  if (first?.kind !== 'authenticated') throw new Error('not authenticated')
  expect(first.subject.dn.rdns).toHaveLength(2)
  expect(first.subject.attributes.values('uid')).toEqual(['guest, ou=admins'])
})

test('the name is below the root of the chain', async () => {
  const [first, second] = await begin({}, 'o=Tremolo', 'o=Other')
  const names = [first, second].map((outcome) => outcome?.kind === 'authenticated' && outcome.subject.dn.toString())
  expect(names).toEqual(['uid=Anonymous,o=Tremolo', 'uid=Anonymous,o=Other'])
})
