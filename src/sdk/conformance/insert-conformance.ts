import assert from 'node:assert/strict'
import type { DirectoryPageSearch, InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { DirectoryInsert } from '#sdk/directory/directory-insert.ts'

/**
 * An insert with three users, with the logins ada, bob and carol, `mail` of login@example.com, ada and bob in the
 * group `admins`; and a group `guests`, which is empty unless the system needs a member in every group.
 */
interface InsertFixture {
  readonly insert: DirectoryInsert
  readonly suffix: Dn
  person(login: string): Dn
  group(name: string): Dn
  /** The attribute with logins. */
  readonly login: string
  /** Ada's; absent if the insert checks no passwords. */
  readonly password?: string
  close?(): Promise<void>
}

interface InsertSuite {
  test(name: string, run: () => Promise<void>): void
}

type Case = (fixture: InsertFixture) => Promise<void>

const anything: Filter = { kind: 'present', attribute: 'objectClass' }
const equal = (attribute: string, value: string): Filter => ({ kind: 'equal', attribute, value })

/** What every directory insert must do; `open` returns a separate insert for each case, or one that no case changes. */
export function insertConformance(open: () => Promise<InsertFixture>, { test }: InsertSuite): void {
  for (const [name, run] of Object.entries(cases)) {
    test(name, async () => {
      const fixture = await open()
      try {
        await run(fixture)
      } finally {
        await fixture.close?.()
      }
    })
  }
}

const cases: Readonly<Record<string, Case>> = {
  'finds a user by login, in any letter case, with name and attributes': async (fixture) => {
    const [ada, ...others] = await found(fixture, equal(fixture.login, 'ADA'))
    assert.equal(others.length, 0)
    assert.ok(ada !== undefined)
    assert.ok(ada.dn.equals(fixture.person('ada')))
    assert.deepEqual(ada.attributes.values('mail'), ['ada@example.com'])
    assert.ok(ada.attributes.values('objectClass').length > 0)
  },

  'reads an entry by its name in any spelling, and nothing for a missing one': async (fixture) => {
    const at = async (base: Dn) =>
      (await fixture.insert.search({ base, scope: 'base', filter: anything, limit: 5 })).entries
    assert.deepEqual(keys(await at(Dn.parse(fixture.person('ada').toString().toUpperCase()))), [
      key(fixture.person('ada')),
    ])
    assert.deepEqual(keys(await at(fixture.group('admins'))), [key(fixture.group('admins'))])
    assert.deepEqual(await at(fixture.person('nobody')), [])
    assert.deepEqual(await at(fixture.person('*')), [])
    assert.deepEqual(await at(fixture.person('ada)(objectClass=*')), [])
  },

  'respects the scope': async (fixture) => {
    const people = fixture.person('ada').parent ?? fixture.suffix
    const filter: Filter = { kind: 'present', attribute: 'mail' }
    const count = async (base: Dn, scope: DirectoryPageSearch['scope']) =>
      (await fixture.insert.search({ base, scope, filter, limit: 100 })).entries.length
    assert.equal(await count(people, 'one'), 3)
    assert.equal(await count(people, 'sub'), 3)
    assert.equal(await count(people, 'base'), 0)
    assert.equal(await count(fixture.person('ada'), 'one'), 0)
    assert.equal(await count(fixture.person('ada'), 'sub'), 1)
    assert.equal(await count(people.child('ou', 'nowhere'), 'sub'), 0)
  },

  'combines clauses, and treats absence as neither true nor false': async (fixture) => {
    const logins = async (filter: Filter) =>
      (await found(fixture, filter)).map(({ attributes }) => attributes.first(fixture.login)).sort()
    const [ada, bob] = [equal(fixture.login, 'ada'), equal(fixture.login, 'bob')]
    const isPerson: Filter = { kind: 'present', attribute: 'mail' }
    assert.deepEqual(await logins({ kind: 'or', filters: [ada, bob] }), ['ada', 'bob'])
    assert.deepEqual(await logins({ kind: 'and', filters: [ada, bob] }), [])
    assert.deepEqual(await logins({ kind: 'and', filters: [isPerson, { kind: 'not', filter: ada }] }), ['bob', 'carol'])
    assert.deepEqual(await logins({ kind: 'substring', attribute: 'mail', initial: 'ca', any: [], final: '.com' }), [
      'carol',
    ])
    assert.deepEqual(await logins({ kind: 'not', filter: equal('noSuchAttribute', 'x') }), [])
    assert.deepEqual(await logins(equal('mail', '*@example.com')), [])
  },

  'returns every entry once, page by page, for any page size': async (fixture) => {
    const all = keys(await found(fixture, anything))
    assert.ok(all.length >= 5)
    for (const limit of [1, 2, 3]) {
      const seen: string[] = []
      let after: string | undefined
      for (let pages = 0; pages < 100; pages++) {
        const search = { base: fixture.suffix, scope: 'sub', filter: anything, limit } as const
        const page = await fixture.insert.search(after === undefined ? search : { ...search, after })
        assert.ok(page.entries.length <= limit)
        seen.push(...page.entries.map(({ dn }) => key(dn)))
        after = page.next
        if (after === undefined) break
      }
      assert.deepEqual(seen.sort(), all)
    }
  },

  'rejects an unknown position': async (fixture) => {
    for (const after of ['', 'nonsense', 'bm9uc2Vuc2U', '{"a":1}']) {
      const search = { base: fixture.suffix, scope: 'sub', filter: anything, limit: 1, after } as const
      await assert.rejects(
        fixture.insert.search(search),
        (error) => error instanceof GatewayError && error.code === 'BAD_REQUEST',
      )
    }
  },

  'returns the members of a group, and whether a user is one': async ({ insert, person, group }) => {
    const names = await insert.members(group('admins'), 10)
    assert.deepEqual(names.map(key).sort(), [key(person('ada')), key(person('bob'))].sort())
    assert.equal((await insert.members(group('admins'), 1)).length, 1)
    assert.deepEqual(await insert.members(group('nobodys'), 10), [])
    assert.equal(await insert.isMember(group('admins'), Dn.parse(person('ada').toString().toUpperCase())), true)
    assert.equal(await insert.isMember(group('ADMINS'), person('bob')), true)
    assert.equal(await insert.isMember(group('admins'), person('carol')), false)
    assert.equal(await insert.isMember(group('guests'), person('ada')), false)
    assert.equal(await insert.isMember(group('nobodys'), person('ada')), false)
    assert.equal(await insert.isMember(group('admins'), Dn.parse('uid=ada,o=elsewhere')), false)
  },

  'finds the groups of a user by name, in any spelling': async (fixture) => {
    const isGroup: Filter = {
      kind: 'or',
      filters: ['groupOfUniqueNames', 'groupOfNames'].map((name) => equal('objectClass', name)),
    }
    const holding = async (dn: Dn) => {
      const name = dn.toString().replaceAll(',', ' , ')
      const isIn: Filter = { kind: 'or', filters: [equal('uniqueMember', name), equal('member', name)] }
      return keys(await found(fixture, { kind: 'and', filters: [isGroup, isIn] }))
    }
    assert.deepEqual(await holding(fixture.person('ada')), [key(fixture.group('admins'))])
    assert.deepEqual(await holding(fixture.person('carol')), [])
    assert.deepEqual(await holding(fixture.person('*')), [])
  },

  'checks passwords': async ({ insert, person, password }) => {
    if (password === undefined || insert.bind === undefined) return
    assert.equal(await insert.bind(person('ada'), password), true)
    assert.equal(await insert.bind(person('ada'), `${password} `), false)
    assert.equal(await insert.bind(person('bob'), password), false)
    assert.equal(await insert.bind(person('nobody'), password), false)
    assert.equal(await insert.bind(person('*'), password), false)
  },
}

const key = (dn: Dn): string => dn.key
const keys = (entries: readonly InsertEntry[]): string[] => entries.map(({ dn }) => key(dn)).sort()

async function found({ insert, suffix }: InsertFixture, filter: Filter): Promise<readonly InsertEntry[]> {
  const entries: InsertEntry[] = []
  let after: string | undefined
  do {
    const search = { base: suffix, scope: 'sub', filter, limit: 1000 } as const
    const page = await insert.search(after === undefined ? search : { ...search, after })
    entries.push(...page.entries)
    after = page.next
  } while (after !== undefined)
  return entries
}
