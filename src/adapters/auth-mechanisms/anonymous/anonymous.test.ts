import { expect, test } from 'vitest'
import { readParameters } from '#sdk/module/parameters.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import anonymous from './anonymous.ts'

const beginWith = async (params: ParamValues, init: ParamValues, ...roots: string[]) => {
  const prepared = anonymous.prepare(fakeParams(params), fakeParams(init), noIssues(), fakeParseContext())
  const mechanism = await prepared.create(fakeModuleHost())
  return Promise.all(roots.map((root) => mechanism.begin({ request: fakeRequest({}), subject: undefined, root })))
}
const begin = (params: ParamValues, ...roots: string[]) => beginWith(params, {}, ...roots)

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

test.each([
  ['uid=Anonymous', 'uid=Anonymous,o=Tremolo', 'uid', 'Anonymous'],
  ['cn=none', 'cn=none,o=Tremolo', 'cn', 'none'],
  ['guest', 'uid=guest,o=Tremolo', 'uid', 'guest'],
])('the mechanism may name anonymous callers: %s', async (userName, dn, attribute, value) => {
  const [outcome] = await beginWith({}, { userName }, 'o=Tremolo')
  if (outcome?.kind !== 'authenticated') throw new Error('not authenticated')
  expect(outcome.subject.dn.toString()).toBe(dn)
  expect(outcome.subject.attributes.values(attribute)).toEqual([value])
})

test('the name is one attribute and its value', () => {
  const issues = noIssues()
  const given = fakeParams({ userName: 'uid=a,ou=admins' })
  readParameters(anonymous.initParameters, given, issues, fakeParseContext())
  expect(issues.list.map(({ message }) => message)).toEqual([expect.stringContaining('one attribute and its value')])
})

test('the mechanism may give anonymous callers more attributes', async () => {
  const init = { userName: 'uid=Anonymous', role: ['Users', 'Readers'], mail: 'none@example.com', sn: '' }
  const issues = noIssues()
  readParameters(anonymous.initParameters, fakeParams(init), issues, fakeParseContext())
  expect(issues.list).toEqual([])
  const [outcome] = await beginWith({ userName: 'guest' }, init, 'o=Tremolo')
  if (outcome?.kind !== 'authenticated') throw new Error('not authenticated')
  const { attributes } = outcome.subject
  expect(['uid', 'role', 'mail', 'sn'].map((name) => attributes.values(name))).toEqual([
    ['guest'],
    ['Users', 'Readers'],
    ['none@example.com'],
    [],
  ])
})
