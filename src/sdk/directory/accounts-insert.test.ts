import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { insertConformance } from '#sdk/conformance/insert-conformance.ts'
import { type Accounts, AccountsInsert } from '#sdk/directory/accounts-insert.ts'
import { sampled } from '#testing/hostile/sample.ts'

const suffix = Dn.parse('ou=hr,o=Tremolo')
const layout = {
  people: suffix.child('ou', 'people'),
  groups: suffix.child('ou', 'groups'),
  userAttribute: 'uid',
  groupAttribute: 'cn',
}
const person = (login: string): Dn => layout.people.child('uid', login)
const groupName = (name: string): Dn => layout.groups.child('cn', name)

function accounts(users: readonly User[], groups: readonly Group[], membersAreIds = false, positions = true): Accounts {
  const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
  const userSource = (one: User) =>
    Attributes.from([...one.attributes, ['userID', [one.userID]], ['id', [one.id ?? '']]])
  const groupSource = (one: Group) => Attributes.from({ name: [one.name], id: [one.id] })
  const given = <T extends { next?: string | undefined }>(page: T): T => {
    if (!positions) delete page.next
    return page
  }
  return {
    lookupUserByLogin: async (login) => users.find((one) => same(one.userID, login)),
    lookupUserById: async (id) => users.find((one) => one.id === id),
    searchUsers: async (query) =>
      given({ ...pageInMemory(users, query, { of: 'users', source: userSource, key: ({ userID }) => userID }) }),
    lookupGroupByName: async (name) => groups.find((one) => same(one.name, name)),
    searchGroups: async (query) => {
      const bare = groups.map((one) => ({ ...one, members: [] }))
      return given({ ...pageInMemory(bare, query, { of: 'groups', source: groupSource, key: ({ name }) => name }) })
    },
    groupMembersAreIds: membersAreIds,
  }
}

const user = (userID: string, groups: readonly string[], mail = [`${userID}@example.com`]): User => ({
  userID,
  id: `#${userID}`,
  groups,
  attributes: Attributes.from({ mail }),
})
const people = [user('ada', ['admins']), user('bob', ['admins']), user('carol', [])]

for (const [name, membersAreIds, positions] of [
  ['members by login', false, true],
  ['members by id', true, true],
  ['pages by offset', false, false],
] as const) {
  describe(`accounts as an insert: ${name}`, () => {
    const members = ['ada', 'bob'].map((login) => (membersAreIds ? `#${login}` : login))
    const groups: Group[] = [
      { id: '1', name: 'admins', members },
      { id: '2', name: 'guests', members: [] },
    ]
    const insert = new AccountsInsert(accounts(people, groups, membersAreIds, positions), layout)
    const fixture = { insert, suffix, person, group: groupName, login: 'uid' }
    insertConformance(async () => fixture, { test: (title, run) => test(title, run) })
  })
}

const search = (insert: AccountsInsert, filter: Filter, limit = 1000, after?: string) =>
  insert.search({ base: suffix, scope: 'sub', filter, limit, ...(after === undefined ? {} : { after }) })

test('ids of the store are found as entryUUID, and total counts people and groups', async () => {
  const insert = new AccountsInsert(accounts(people, [{ id: '1', name: 'admins', members: [] }]), layout)
  const filter: Filter = { kind: 'equal', attribute: 'entryUUID', value: '#bob' }
  expect((await search(insert, filter)).entries.map(({ dn }) => dn.toString())).toEqual([person('bob').toString()])
  const all = { base: suffix, scope: 'sub', filter: { kind: 'and', filters: [] }, limit: 1, count: true } as const
  expect(await insert.search(all)).toMatchObject({ total: 4, entries: [{}] })
})

test('a position of one search is invalid for another', async () => {
  const insert = new AccountsInsert(accounts(people, []), layout)
  const first = await search(insert, { kind: 'present', attribute: 'mail' }, 1)
  expect(first.next).toBeDefined()
  await expect(search(insert, { kind: 'present', attribute: 'uid' }, 1, first.next)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
  })
})

test('a filter that needs to read all users is rejected, not cut', async () => {
  const searchUsers: Accounts['searchUsers'] = async ({ offset, limit }) => ({
    items: Array.from({ length: limit }, (_, i) => user(`u${offset + i}`, [])),
    total: 1_000_000,
  })
  const insert = new AccountsInsert({ ...accounts([], []), searchUsers }, layout)
  const filter: Filter = { kind: 'substring', attribute: 'memberOf', initial: 'cn=x', any: [] }
  await expect(search(insert, filter)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

const names = ['ada', 'bob', 'carol', 'dora', 'eve']
const groupNames = ['g1', 'g2', 'g3']
const leaf: fc.Arbitrary<Filter> = fc.oneof(
  fc
    .constantFrom('mail', 'uid', 'memberOf', 'objectClass', 'roles', 'none')
    .map((attribute): Filter => ({ kind: 'present', attribute })),
  fc.constantFrom(...names).map((value): Filter => ({ kind: 'equal', attribute: 'UID', value })),
  fc.constantFrom('a', 'b').map((value): Filter => ({ kind: 'equal', attribute: 'mail', value })),
  fc
    .constantFrom('inetOrgPerson', 'groupOfNames')
    .map((value): Filter => ({ kind: 'equal', attribute: 'objectClass', value })),
  fc
    .constantFrom(...groupNames, 'none')
    .map((name): Filter => ({ kind: 'equal', attribute: 'memberOf', value: groupName(name).toString().toUpperCase() })),
  fc
    .constantFrom(...groupNames)
    .map((name): Filter => ({ kind: 'substring', attribute: 'memberOf', initial: `cn=${name}`, any: [] })),
  fc.constantFrom(...groupNames, 'none').map((value): Filter => ({ kind: 'equal', attribute: 'Roles', value })),
)
const { filter: anyFilter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie('filter'), { maxLength: 3 }).map((filters): Filter => ({ kind: 'and', filters })),
    fc.array(tie('filter'), { maxLength: 3 }).map((filters): Filter => ({ kind: 'or', filters })),
    tie('filter').map((filter): Filter => ({ kind: 'not', filter })),
  ),
}))

test('a search returns exactly the users whose entries match, each once', async () => {
  const held = fc.record({ groups: fc.subarray(groupNames), mail: fc.subarray(['a', 'b']) })
  await fc.assert(
    fc.asyncProperty(
      anyFilter,
      fc.array(held, { maxLength: 5 }),
      fc.integer({ min: 1, max: 4 }),
      async (filter, who, limit) => {
        const users = who.map(({ groups, mail }, i) => user(names[i] ?? '', groups, mail))
        const groups = groupNames.map((name) => ({
          id: name,
          name,
          members: users.filter((one) => one.groups.includes(name)).map(({ userID }) => userID),
        }))
        const insert = new AccountsInsert(accounts(users, groups), { ...layout, groupsAttribute: 'roles' })
        const wanted = users
          .map((one) => insert.personEntry(one))
          .filter(({ attributes }) => matches(filter, attributes))
        const found: string[] = []
        let after: string | undefined
        do {
          const place = after === undefined ? {} : { after }
          const page = await insert.search({ base: layout.people, scope: 'one', filter, limit, ...place })
          expect(page.entries.length).toBeLessThanOrEqual(limit)
          found.push(...page.entries.map(({ dn }) => dn.key))
          after = page.next
        } while (after !== undefined)
        expect(found.sort()).toEqual(wanted.map(({ dn }) => dn.key).sort())
      },
    ),
    { numRuns: sampled(250, 1000) },
  )
})

test('errors of the store pass unchanged', async () => {
  const down = new GatewayError('TARGET_UNREACHABLE', 'hr does not answer')
  const insert = new AccountsInsert({ ...accounts([], []), searchUsers: () => Promise.reject(down) }, layout)
  await expect(search(insert, { kind: 'and', filters: [] })).rejects.toBe(down)
})

test('shows the names of groups where the store or the layout says so', async () => {
  const groupsOf = async (insert: AccountsInsert, attribute = 'groups') => {
    const search = {
      base: person('ada'),
      scope: 'base',
      filter: { kind: 'present', attribute: 'uid' },
      limit: 1,
    } as const
    return (await insert.search(search)).entries[0]?.attributes.values(attribute)
  }
  const store = accounts(people, [])
  expect(await groupsOf(new AccountsInsert({ ...store, showsGroups: true }, layout))).toEqual(['admins'])
  expect(await groupsOf(new AccountsInsert(store, layout))).toEqual([])
  const named = new AccountsInsert({ ...store, showsGroups: true }, { ...layout, groupsAttribute: 'roles' })
  expect([await groupsOf(named), await groupsOf(named, 'roles')]).toEqual([[], ['admins']])
})
