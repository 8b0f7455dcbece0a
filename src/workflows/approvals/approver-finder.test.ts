import { describe, expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { issuerIdentity, loginIdentity, type UserRef } from '#identity/identity.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Authorization } from '#sdk/auth/authorization.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { MemoryPeople } from '#testing/workflows/memory-people.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { ApproverFinder } from './approvers.ts'

const people = (membersAreIds = false): MemoryPeople => {
  const all = new MemoryPeople(membersAreIds)
  all.put('ada', ['managers'], { department: ['it'] })
  all.put('bob', ['managers'], { department: ['hr'] })
  all.put('cy', [], { department: ['it'] })
  all.putGroup('it-people', { memberURL: ['ldap:///ou=people,o=Tremolo??sub?(department=it)'] })
  all.putGroup('broken', { memberURL: ['http://x'] })
  return all
}

const dn = (text: string): Rule => ({ scope: 'dn', constraint: text, dn: Dn.parse(text) })
const filter = (text: string): Rule => ({ scope: 'filter', constraint: text, filter: parseFilter(text) })
const group = (scope: 'group' | 'dynamicGroup', name: string): Rule => {
  const text = `cn=${name},ou=groups,ou=people,o=Tremolo`
  return { scope, constraint: text, group: Dn.parse(text) }
}
const custom = (...params: string[]): Rule => ({ scope: 'custom', constraint: 'who', name: 'who', params })

function finder(all = people(), authorizations: Record<string, Authorization> = {}): ApproverFinder {
  const { directory, root } = all
  return new ApproverFinder({
    directory,
    root,
    authorizations: new Map(Object.entries(authorizations)),
    log: silentLogger,
  })
}

const found = async (rules: readonly Rule[], from = finder()): Promise<string[]> =>
  (await from.find(rules)).map(({ login }) => login).sort()

describe('each scope finds its users, and no groups', () => {
  test('dn', async () => {
    expect(await found([dn('ou=people,o=Tremolo')])).toEqual(['ada', 'bob', 'cy'])
    expect(await found([dn('uid=BOB,ou=people,o=Tremolo')])).toEqual(['bob'])
    expect(await found([dn('ou=eople,o=Tremolo')])).toEqual([])
  })

  test('filter', async () => {
    expect(await found([filter('(department=it)')])).toEqual(['ada', 'cy'])
    expect(await found([filter('(objectClass=*)')])).toEqual(['ada', 'bob', 'cy'])
    expect(await found([filter('(cn=managers)')])).toEqual([])
  })

  test('group, with logins or ids as members', async () => {
    expect(await found([group('group', 'managers')])).toEqual(['ada', 'bob'])
    expect(await found([group('group', 'managers')], finder(people(true)))).toEqual(['ada', 'bob'])
    expect(await found([group('group', 'none')])).toEqual([])
  })

  test('dynamicGroup', async () => {
    expect(await found([group('dynamicGroup', 'it-people')])).toEqual(['ada', 'cy'])
    expect(await found([group('dynamicGroup', 'none')])).toEqual([])
    await expect(found([group('dynamicGroup', 'broken')])).rejects.toThrow(/LDAP URL/)
  })

  test('custom, by login or by name', async () => {
    const who: Authorization = {
      isAuthorized: () => true,
      listPossibleApprovers: async ([first = '']) => [
        first,
        'uid=ada,ou=people,o=Tremolo',
        'uid=x,o=Tremolo',
        'a=b=c\\',
      ],
    }
    expect(await found([custom('BOB')], finder(people(), { who }))).toEqual(['ada', 'bob'])
    expect(await found([custom('bob')], finder(people(), { who: { isAuthorized: () => true } }))).toEqual([])
    expect(await found([custom('bob')])).toEqual([])
  })

  test('several rules find each user once', async () => {
    expect(await found([group('group', 'managers'), filter('(department=it)')])).toEqual(['ada', 'bob', 'cy'])
    expect(await found([])).toEqual([])
  })
})

test('no rule finds a deactivated user', async () => {
  const all = people().put('ada', ['managers'], { department: ['it'], active: ['false'] })
  const who: Authorization = { isAuthorized: () => true, listPossibleApprovers: async () => ['ada', 'bob'] }
  const from = finder(all, { who })
  expect(await found([dn('ou=people,o=Tremolo')], from)).toEqual(['bob', 'cy'])
  expect(await found([filter('(department=it)')], from)).toEqual(['cy'])
  expect(await found([group('group', 'managers')], from)).toEqual(['bob'])
  expect(await found([group('dynamicGroup', 'it-people')], from)).toEqual(['cy'])
  expect(await found([custom()], from)).toEqual(['bob'])
})

describe('too many users are an error, never cut', () => {
  const crowd = people()
  for (let i = 0; i < 1000; i++) crowd.put(`c${i}`, [], { department: ['crowd'] })
  crowd.put('one-more', [], { department: ['few'] })

  test.each([
    ['dn', dn('o=Tremolo')],
    ['filter', filter('(department=crowd)')],
  ] as const)('%s', async (_, rule) => {
    await expect(found([rule], finder(crowd))).rejects.toMatchObject({ code: 'NO_APPROVERS' })
    expect(await found([filter('(department=few)')], finder(crowd))).toEqual(['one-more'])
  })

  test('custom', async () => {
    const names = Array.from({ length: 1000 }, (_, i) => `c${i}`)
    const who: Authorization = { isAuthorized: () => true, listPossibleApprovers: async () => names }
    await expect(found([custom()], finder(crowd, { who }))).rejects.toMatchObject({ code: 'NO_APPROVERS' })
  })
})

test('a user is found by identity, even after a rename, and never by login alone', async () => {
  const all = people()
  const logins = async (user: UserRef & { readonly dn?: Dn }) =>
    (await finder(all).entriesOf(user)).map(({ attributes }) => attributes.first('uid'))
  expect(await logins({ ...userRef('ada'), login: 'x' })).toEqual(['ada'])
  expect(await logins({ ...userRef('ada'), login: 'x', dn: all.userDn('bob') })).toEqual(['ada'])
  expect(await logins({ identity: issuerIdentity('https://i', 'bob'), login: 'bob' })).toEqual([])
  expect(await logins({ identity: issuerIdentity('https://i', 'bob'), login: 'bob', dn: all.userDn('bob') })).toEqual(
    [],
  )
  expect(await logins({ ...userRef('gone'), login: 'ada' })).toEqual([])
  // Rows from before identities name a login only.
  expect(await logins({ identity: loginIdentity('BOB'), login: 'BOB' })).toEqual(['bob'])
  for (const login of ['*', '']) expect(await logins({ identity: loginIdentity(login), login })).toEqual([])
})

test('a user is named by display name, and by login without one or without an entry of their own', async () => {
  const all = people()
  all.put('dee', [], { displayName: ['Dee Dee'] })
  const nameOf = (user: UserRef): Promise<string> => finder(all).nameOf(user)
  expect(await nameOf(userRef('dee'))).toBe('Dee Dee')
  expect(await nameOf({ identity: loginIdentity('dee'), login: 'DEE' })).toBe('Dee Dee')
  expect(await nameOf(userRef('ada'))).toBe('ada')
  expect(await nameOf({ identity: issuerIdentity('https://i', 'dee'), login: 'dee' })).toBe('dee')
  all.put('eve', [], { displayName: ['Dee Dee\nApproved\u202e'] })
  expect(await nameOf(userRef('eve'))).toBe('Dee Dee Approved')
  expect(await finder(all).nameOf(userRef('eve'), { withLogin: true })).toBe('Dee Dee Approved (eve)')
  expect(await finder(all).nameOf(userRef('ada'), { withLogin: true })).toBe('ada')
})
