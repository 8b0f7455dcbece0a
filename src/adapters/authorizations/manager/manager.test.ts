import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { issuerIdentity, loginIdentity, type UserRef } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { subject } from '#testing/login/subjects.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import manager from './manager.ts'

const nameOf = (uid: string): string => `uid=${uid},ou=people,o=Tremolo`
const person = (uid: string, ...managers: string[]): InsertEntry => ({
  dn: Dn.parse(nameOf(uid)),
  attributes: Attributes.from({
    uid: [uid],
    objectClass: ['inetOrgPerson'],
    manager: managers.map(nameOf),
    boss: managers,
  }),
})
const entries = [
  person('dev', 'lead'),
  person('lead', 'head'),
  person('head', 'head'),
  person('two', 'lead', 'head'),
  person('none'),
]
const ref = (uid: string): UserRef => {
  const entry = entries.find(({ attributes }) => attributes.first('uid') === uid)
  if (entry === undefined) throw new Error(uid)
  return { identity: directoryEntry(entry).identity, login: uid }
}
const as = (uid: string): Subject => ({ ...subject(nameOf(uid)), ...{ identity: ref(uid).identity } })

const documented = { numLevels: '1', managerID: 'manager', managerIDIsDN: 'true', allowLowerManagers: 'false' }

async function open(params: ParamValues = {}) {
  const issues = noIssues()
  const prepared = manager.prepare(fakeParams({ ...documented, ...params }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  return prepared.create(fakeModuleHost({ entries }))
}

async function mayDecide(about: UserRef, params: ParamValues = {}): Promise<string[]> {
  const { isAuthorized, listPossibleApprovers } = await open(params)
  const allowed: string[] = []
  for (const uid of ['dev', 'lead', 'head', 'two', 'none']) {
    if (await isAuthorized(as(uid), [], about)) allowed.push(uid)
  }
  expect((await listPossibleApprovers?.([], about))?.toSorted()).toEqual(allowed.map(nameOf).toSorted())
  return allowed
}

test('the manager of the user whom the request is about may decide', async () => {
  expect(await mayDecide(ref('dev'))).toEqual(['lead'])
  expect(await mayDecide(ref('lead'))).toEqual(['head'])
  expect(await mayDecide({ login: 'dev', identity: loginIdentity('dev') })).toEqual(['lead'])
})

test('managers can be named by login, and be further up', async () => {
  const byLogin = { managerID: 'boss', managerIDIsDN: 'false' }
  expect(await mayDecide(ref('dev'), byLogin)).toEqual(['lead'])
  expect(await mayDecide(ref('dev'), { numLevels: '2' })).toEqual(['head'])
  expect(await mayDecide(ref('dev'), { ...byLogin, numLevels: '2', allowLowerManagers: 'true' })).toEqual([
    'lead',
    'head',
  ])
  expect(await mayDecide(ref('dev'), { numLevels: '10', allowLowerManagers: 'true' })).toEqual(['lead', 'head'])
})

test.each<[string, UserRef, ParamValues]>([
  ['has no manager', ref('none'), {}],
  ['has two', ref('two'), {}],
  ['is their own manager', ref('head'), {}],
  ['has no manager that far up', ref('dev'), { numLevels: '3' }],
  ['is not in the directory', { login: 'dev', identity: issuerIdentity('https://out.test', 'dev') }, {}],
  ['is unknown', { login: 'stranger', identity: loginIdentity('stranger') }, {}],
  ['names something else than an entry', ref('dev'), { managerID: 'boss' }],
])('no one may decide for a user who %s', async (_, about, params) => {
  expect(await mayDecide(about, params)).toEqual([])
})

test('it decides only in approvals', async () => {
  const { isAuthorized } = await open()
  await expect(Promise.resolve(isAuthorized(as('lead'), []))).rejects.toThrow('only in approvals')
})

test('reports invalid parameters', () => {
  const read = (params: ParamValues) => {
    const issues = noIssues()
    manager.prepare(fakeParams(params), issues, fakeParseContext())
    return issueTexts(issues.list)
  }
  expect(read({})).toHaveLength(2)
  expect(read({ ...documented, numLevels: '11' })).toHaveLength(1)
  expect(read({ ...documented, numLevels: '0' })).toHaveLength(1)
})
