import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectorySearch } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { Group } from '#identity/group.ts'
import { entryIdentity } from '#identity/identity.ts'
import type { SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { Scope } from '#kernel/scope.ts'
import type { LookupTarget, Target } from '#sdk/target/target.ts'
import { createMounts, targetBranches } from './create-directory.ts'
import { VirtualDirectory } from './virtual-directory.ts'

const user = (userID: string, groups: string[], attributes: Record<string, string[]> = {}): User => ({
  userID,
  groups,
  attributes: Attributes.from(attributes),
})
const users = [
  user('ada', ['Admins'], { mail: ['ada@x.org'] }),
  user('bob, the "builder"', [], { mail: ['bob@x.org'] }),
]
const groups: Group[] = [
  { id: '1', name: 'Admins', members: ['ada'] },
  { id: '2', name: 'Guests', members: [] },
]

function page<T>(items: readonly T[], named: (item: T) => Attributes, { filter, offset, limit }: SearchQuery) {
  const found = items.filter((item) => filter === undefined || matches(filter, named(item)))
  return { items: found.slice(offset, offset + limit), total: found.length }
}

const userAttributes = (one: User): Attributes => Attributes.from([...one.attributes, ['userID', [one.userID]]])
const groupAttributes = (one: Group): Attributes => Attributes.from({ name: [one.name] })
const target = {
  lookupUserByLogin: async (login: string) => users.find((one) => one.userID === login),
  searchUsers: async (query: SearchQuery) => page(users, userAttributes, query),
  lookupGroupByName: async (name: string) => groups.find((one) => one.name === name),
  searchGroups: async (query: SearchQuery) => page(groups, groupAttributes, query),
  groupMembersAreIds: false,
} as unknown as LookupTarget
const withoutLookups = { findUser: async () => undefined } as unknown as Target

const targets = new Map([
  ['hr', target],
  ['mute', withoutLookups],
])
const directory = new VirtualDirectory(targetBranches(Dn.parse('o=Tremolo'), targets))
const find = async (base: string, filter: string, scope: DirectorySearch['scope'] = 'sub', limit = 100) =>
  (await directory.search({ base: Dn.parse(base), scope, filter: parseFilter(filter), limit })).map(({ dn }) =>
    dn.toString(),
  )

const adaDn = 'uid=ada,ou=hr,o=Tremolo'
const adminsDn = 'cn=Admins,ou=groups,ou=hr,o=Tremolo'

describe('targets as branches of the directory', () => {
  test('finds users and groups from the root down', async () => {
    expect(await find('o=Tremolo', '(mail=ada@x.org)')).toEqual([adaDn])
    expect(await find('o=Tremolo', '(objectClass=*)')).toHaveLength(4)
    expect(await find('o=Tremolo', '(&(objectClass=groupOfUniqueNames)(cn=admins))')).toEqual([adminsDn])
    expect(await find('o=Tremolo', '(&(objectClass=inetOrgPerson)(!(mail=ada*)))')).toEqual([
      'uid=bob\\, the \\"builder\\",ou=hr,o=Tremolo',
    ])
    expect(await find('ou=other,o=Tremolo', '(objectClass=*)')).toEqual([])
  })

  test('respects scope and limit', async () => {
    expect(await find('ou=hr,o=Tremolo', '(objectClass=*)', 'one')).toHaveLength(2)
    expect(await find('o=Tremolo', '(objectClass=*)', 'one')).toEqual([])
    expect(await find('o=Tremolo', '(objectClass=*)', 'sub', 1)).toHaveLength(1)
    expect(await find(adaDn, '(objectClass=*)', 'base')).toEqual([adaDn])
    expect(await find(adaDn, '(mail=other)', 'base')).toEqual([])
    expect(await find(adminsDn, '(objectClass=*)', 'base')).toEqual([adminsDn])
  })

  test('an entry lists its groups, a group its members', async () => {
    const [ada] = await directory.search({
      base: Dn.parse(adaDn),
      scope: 'base',
      filter: parseFilter('(uid=ada)'),
      limit: 1,
    })
    expect(ada?.attributes.values('memberOf')).toEqual([adminsDn])
    const [admins] = await directory.search({
      base: Dn.parse(adminsDn),
      scope: 'base',
      filter: parseFilter('(cn=*)'),
      limit: 1,
    })
    expect(admins?.attributes.values('uniqueMember')).toEqual([adaDn])
  })

  test('membership is by name within one target', async () => {
    const member = (group: string, who: string) => directory.isMember(Dn.parse(group), Dn.parse(who))
    expect(await member(adminsDn.toLowerCase(), adaDn)).toBe(true)
    expect(await member(adminsDn, 'uid=bob,ou=hr,o=Tremolo')).toBe(false)
    expect(await member('cn=Admins,ou=groups,ou=other,o=Tremolo', adaDn)).toBe(false)
    expect(await member(adminsDn, 'uid=ada,ou=other,o=Tremolo')).toBe(false)
    expect(await member(adminsDn, 'uid=ada,ou=x,ou=hr,o=Tremolo')).toBe(false)
  })
})

test('a target that is set aside is unknown, not empty, and hides no others unless it surely has users', async () => {
  const root = Dn.parse('o=Tremolo')
  const withAside = async (lookups: boolean | undefined) => {
    const setAside = [{ kind: 'Target', name: 'crm', reason: 'it has errors', lookups }]
    const none = () => Promise.reject(new Error('there are no inserts'))
    const mounts = await createMounts({ inserts: [], directoryRoot: root, setAside }, targets, new Scope(), none)
    return new VirtualDirectory(mounts)
  }
  const everyone = { scope: 'sub', filter: parseFilter('(uid=ada)'), limit: 10 } as const
  const inside = root.child('ou', 'crm')
  for (const lookups of [true, undefined]) {
    const unknown = await withAside(lookups)
    await expect(unknown.search({ ...everyone, base: inside })).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await expect(unknown.bind(inside.child('uid', 'ada'), 'x')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await expect(unknown.entry(entryIdentity('crm', '1'))).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  }
  await expect((await withAside(true)).search({ ...everyone, base: root })).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
  })
  expect(await (await withAside(undefined)).search({ ...everyone, base: root })).toHaveLength(1)
  expect(await (await withAside(false)).search({ ...everyone, base: inside })).toEqual([])
})

test('what a target outside the directory stores is not found, not even while that target is set aside', async () => {
  const root = Dn.parse('o=Tremolo')
  const none = () => Promise.reject(new Error('there are no inserts'))
  const outsideDirectory = new Set(['other', 'devices'])
  const setAside = [{ kind: 'Target', name: 'devices', reason: 'it has errors', lookups: true }]
  const given = { inserts: [], directoryRoot: root, setAside, outsideDirectory }
  const directory = new VirtualDirectory(await createMounts(given, targets, new Scope(), none))
  const everyone = { scope: 'sub', filter: parseFilter('(objectClass=*)'), limit: 100 } as const
  const names = (await directory.search({ ...everyone, base: root })).map(({ dn }) => dn.toString())
  expect(names.length).toBeGreaterThan(0)
  expect(names.filter((name) => name.includes('ou=other'))).toEqual([])
})
