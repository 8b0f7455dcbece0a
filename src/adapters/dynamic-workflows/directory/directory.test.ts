import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import directory from './directory.ts'

const group = (cn: string, more: Readonly<Record<string, readonly string[]>> = {}): InsertEntry => ({
  dn: Dn.of(['cn', cn], ['ou', 'groups'], ['o', 'x']),
  attributes: Attributes.from({ objectClass: ['groupOfNames'], cn: [cn], ...more }),
})

const params: ParamValues = {
  searchBase: 'ou=groups,o=x',
  searchFilter: '(objectClass=groupOfNames)',
  groupNameAttribute: 'cn',
  approverAttribute: 'owner-mail',
}

async function setsOf(entries: readonly InsertEntry[], more: ParamValues = {}) {
  const issues = noIssues()
  const prepared = directory.prepare(fakeParams({ ...params, ...more }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const source = await prepared.create(fakeModuleHost({ entries }))
  return source.parameterSets(subject('uid=ann,o=x'))
}

test('each entry is a set, with names that templates can use and without members or secrets', async () => {
  const found = await setsOf([
    group('admins', {
      'owner-mail': ['boss@example.com', 'second@example.com'],
      member: ['uid=ann,o=x'],
      userPassword: ['x'],
      APPROVAL_REASON: ['x'],
      description: ['All'],
    }),
    group('guests'),
    { ...group('elsewhere'), dn: Dn.parse('cn=elsewhere,o=y') },
  ])
  expect(found.map((set) => ({ ...set }))).toEqual([
    {
      objectClass: 'groupOfNames',
      cn: 'admins',
      owner_mail: 'boss@example.com',
      description: 'All',
      groupName: 'admins',
      approver: 'boss@example.com',
      descriptionAttribute: '',
    },
    { objectClass: 'groupOfNames', cn: 'guests', groupName: 'guests', approver: '', descriptionAttribute: '' },
  ])
})

test('an entry without its name, and a list that would be truncated, are failures', async () => {
  const failed = { code: 'TARGET_FAILED' }
  await expect(setsOf([group('a')], { groupNameAttribute: 'gidNumber' })).rejects.toMatchObject(failed)
  const many = Array.from({ length: 1000 }, (_, i) => group(`g${i}`))
  await expect(setsOf(many)).rejects.toMatchObject(failed)
})
