import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { DirectorySearch, InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { pageInMemory } from '#identity/paging.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { DirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { MappedInsert } from './create-directory.ts'
import { type Mount, VirtualDirectory } from './virtual-directory.ts'

const anything = parseFilter('(objectClass=*)')

function entry(dn: string, attributes: Record<string, string[]> = {}): InsertEntry {
  const name = Dn.parse(dn)
  const [rdn] = name.rdns[0] ?? []
  return {
    dn: name,
    attributes: Attributes.from({ objectClass: ['top'], ...(rdn && { [rdn.type]: [rdn.value] }), ...attributes }),
  }
}

const inScope = (dn: Dn, base: Dn, scope: DirectorySearch['scope']): boolean =>
  scope === 'base' ? dn.equals(base) : scope === 'one' ? dn.parent?.equals(base) === true : dn.isWithin(base)

/** A system with these entries, which records its searches. */
class MemoryInsert implements DirectoryInsert {
  readonly filters: Filter[] = []
  readonly #entries: readonly InsertEntry[]
  failure: Error | undefined
  readonly bind?: (dn: Dn, password: string) => Promise<boolean>

  constructor(entries: readonly InsertEntry[], passwords?: Record<string, string>) {
    this.#entries = entries
    if (passwords !== undefined) this.bind = async (dn, password) => passwords[dn.toString()] === password
  }

  async search(search: Parameters<DirectoryInsert['search']>[0]) {
    if (this.failure !== undefined) throw this.failure
    this.filters.push(search.filter)
    const { base, scope, filter, limit, after } = search
    const found = this.#entries.filter(({ dn, attributes }) => inScope(dn, base, scope) && matches(filter, attributes))
    const place = { offset: 0, limit, ...(after === undefined ? {} : { after }) }
    const page = pageInMemory(found, place, { of: 'x', source: (one) => one.attributes, key: ({ dn }) => dn.key })
    const total = search.count === true ? { total: page.total } : {}
    return { entries: page.items, ...(page.next === undefined ? {} : { next: page.next }), ...total }
  }

  async isMember(group: Dn, member: Dn) {
    return (await this.members(group, 1000)).some((dn) => dn.equals(member))
  }

  async members(group: Dn, limit: number) {
    if (this.failure !== undefined) throw this.failure
    const found = this.#entries.find(({ dn }) => dn.equals(group))
    return (found?.attributes.values('uniqueMember') ?? []).slice(0, limit).map((name) => Dn.parse(name))
  }
}

function tree() {
  const outer = new MemoryInsert([
    entry('cn=root,o=T'),
    entry('uid=hidden,ou=a,o=T'),
    entry('cn=all,ou=groups,o=T', { uniqueMember: ['uid=1,ou=a,o=T', 'uid=2,ou=b,o=T', 'uid=9,ou=nowhere,o=T'] }),
  ])
  const a = new MemoryInsert([entry('uid=1,ou=a,o=T'), entry('uid=3,ou=a,o=T')], { 'uid=1,ou=a,o=T': 'secret' })
  const b = new MemoryInsert([entry('ou=b,o=T'), entry('uid=2,ou=b,o=T')])
  const mounts: Mount[] = [
    { name: 'b', suffix: Dn.parse('ou=b,o=T'), insert: b },
    { name: 'outer', suffix: Dn.parse('o=T'), insert: outer },
    { name: 'a', suffix: Dn.parse('ou=a,o=T'), insert: a },
  ]
  const directory = new VirtualDirectory(mounts)
  const find = async (base: string, scope: DirectorySearch['scope'] = 'sub', limit = 100) =>
    (await directory.search({ base: Dn.parse(base), scope, filter: anything, limit })).map(({ dn }) => dn.toString())
  return { directory, find, outer, a, b }
}

test('inserts are searched in order, and the innermost owns a name', async () => {
  const { find } = tree()
  expect(await find('o=T')).toEqual([
    'ou=b,o=T',
    'uid=2,ou=b,o=T',
    'cn=all,ou=groups,o=T',
    'cn=root,o=T',
    'uid=1,ou=a,o=T',
    'uid=3,ou=a,o=T',
  ])
  expect(await find('')).toHaveLength(6)
  expect(await find('uid=hidden,ou=a,o=T', 'base')).toEqual([])
  expect(await find('OU=A,o=t')).toEqual(['uid=1,ou=a,o=T', 'uid=3,ou=a,o=T'])
  expect(await find('o=T', 'one')).toEqual(['ou=b,o=T', 'cn=root,o=T'])
  expect(await find('o=other')).toEqual([])
  expect(await find('o=T', 'sub', 2)).toHaveLength(2)
})

test('pages span inserts with each entry once, and a position belongs to its search', async () => {
  const { directory } = tree()
  const search = { base: Dn.parse('o=T'), scope: 'sub', filter: anything } as const
  for (const limit of [1, 2, 4]) {
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await directory.page({ ...search, limit, ...(after === undefined ? {} : { after }) })
      seen.push(...page.entries.map(({ dn }) => dn.key))
      after = page.next
    } while (after !== undefined)
    expect(seen).toHaveLength(6)
    expect(new Set(seen).size).toBe(6)
  }
  const { next = '' } = await directory.page({ ...search, limit: 1 })
  for (const wrong of [
    { ...search, scope: 'one' as const, after: next },
    { ...search, after: 'x' },
  ]) {
    await expect(directory.page({ ...wrong, limit: 1 })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
  const counted = await directory.page({ ...search, base: Dn.parse('ou=a,o=T'), limit: 1, count: true })
  expect(counted.total).toBe(2)
  expect((await directory.page({ ...search, limit: 1, count: true })).total).toBeUndefined()
})

test('a group may have members of another insert; unknown members are left out', async () => {
  const { directory } = tree()
  const group = Dn.parse('cn=all,ou=groups,o=T')
  expect((await directory.members(group, 10)).map(({ dn }) => dn.toString())).toEqual([
    'uid=1,ou=a,o=T',
    'uid=2,ou=b,o=T',
  ])
  expect(await directory.isMember(group, Dn.parse('UID=2,ou=b,o=T'))).toBe(true)
  expect(await directory.isMember(group, Dn.parse('uid=3,ou=a,o=T'))).toBe(false)
  expect(await directory.isMember(Dn.parse('cn=none,o=X'), Dn.parse('uid=3,ou=a,o=T'))).toBe(false)
  expect(await directory.members(Dn.parse('cn=none,o=X'), 5)).toEqual([])
})

test('members come in pages, with those that the directory does not have', async () => {
  const { directory } = tree()
  const page = async (skip: number, limit: number) => {
    const { members, more } = await directory.memberPage(Dn.parse('cn=all,ou=groups,o=T'), skip, limit)
    return [...members.map(({ dn, entry }) => `${dn}${entry === undefined ? ' is unknown' : ''}`), more]
  }
  expect(await page(0, 2)).toEqual(['uid=1,ou=a,o=T', 'uid=2,ou=b,o=T', true])
  expect(await page(2, 2)).toEqual(['uid=9,ou=nowhere,o=T is unknown', false])
  expect(await page(3, 2)).toEqual([false])
  expect(await directory.memberPage(Dn.parse('cn=none,o=X'), 0, 5)).toEqual({ members: [], more: false })
})

test('an insert that does not answer fails its own searches, by its name, and no others', async () => {
  const { directory, find, a } = tree()
  a.failure = new GatewayError('TARGET_UNREACHABLE', 'connect refused', { retryAfter: 3 })
  const down = { code: 'TARGET_UNREACHABLE', message: expect.stringContaining('"a"'), retryAfter: 3 }
  await expect(find('ou=a,o=T')).rejects.toMatchObject(down)
  await expect(find('o=T')).rejects.toMatchObject(down)
  await expect(directory.members(Dn.parse('cn=all,ou=groups,o=T'), 10)).rejects.toMatchObject(down)
  expect(await find('ou=b,o=T')).toHaveLength(2)
  for (const message of ['search: no answer', 'directory insert "a": search: no answer']) {
    a.failure = new GatewayError('TARGET_UNREACHABLE', message)
    await expect(find('ou=a,o=T')).rejects.toMatchObject({ message: 'directory insert "a": search: no answer' })
  }
  a.failure = new TypeError('a bug')
  await expect(find('ou=a,o=T')).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    publicText: expect.not.stringContaining('bug'),
  })
})

test('the insert of the name checks a password, and rejects an empty one', async () => {
  const { directory, a } = tree()
  const ada = Dn.parse('uid=1,ou=a,o=T')
  expect(await directory.bind(ada, 'secret')).toBe(true)
  expect(await directory.bind(ada, 'Secret')).toBe(false)
  expect(await directory.bind(ada, '')).toBe(false)
  expect(await directory.bind(ada, 'x'.repeat(1025))).toBe(false)
  expect(await directory.bind(Dn.parse('uid=1,o=elsewhere'), 'secret')).toBe(false)
  await expect(directory.bind(Dn.parse('uid=2,ou=b,o=T'), 'secret')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  expect(a.bind).toBeDefined()
})

test('a search that gets only empty pages ends', async () => {
  const endless: DirectoryInsert = {
    search: async () => ({ entries: [], next: 'more' }),
    isMember: async () => false,
    members: async () => [],
  }
  const directory = new VirtualDirectory([{ name: 'endless', suffix: Dn.parse('o=T'), insert: endless }])
  const search = directory.search({ base: Dn.parse('o=T'), scope: 'sub', filter: anything, limit: 1 })
  await expect(search).rejects.toMatchObject({ code: 'BAD_REQUEST' })
})

test('attributes and names are renamed in both directions', async () => {
  const suffix = Dn.parse('ou=ad,o=T')
  const inner = new MemoryInsert(
    [
      entry('sAMAccountName=ada,ou=ad,o=T', { email: ['a@x.org'], memberOf: ['cn=all,ou=ad,o=T', 'cn=else,o=T'] }),
      entry('cn=all,ou=ad,o=T', { uniqueMember: ['sAMAccountName=ada,ou=ad,o=T'] }),
    ],
    { 'sAMAccountName=ada,ou=ad,o=T': 'secret' },
  )
  const mapping = new Map([
    ['uid', 'sAMAccountName'],
    ['mail', 'email'],
  ])
  const insert = new MappedInsert(inner, suffix, mapping)
  const directory = new VirtualDirectory([{ name: 'ad', suffix, insert }])
  const find = (filter: string) =>
    directory.search({ base: suffix, scope: 'sub', filter: parseFilter(filter), limit: 10, attributes: ['MAIL'] })
  const [ada] = await find('(&(UID=ada)(!(mail=b*)))')
  expect(ada?.dn.toString()).toBe('uid=ada,ou=ad,o=T')
  expect(ada?.attributes.toObject()).toEqual({
    objectClass: ['top'],
    uid: ['ada'],
    mail: ['a@x.org'],
    memberOf: ['cn=all,ou=ad,o=T', 'cn=else,o=T'],
  })
  const [group] = await find('(uniqueMember=uid=ada,ou=ad,o=T)')
  expect(group?.attributes.values('uniqueMember')).toEqual(['uid=ada,ou=ad,o=T'])
  const name = Dn.parse('uid=ada,ou=ad,o=T')
  expect(await directory.isMember(Dn.parse('cn=all,ou=ad,o=T'), name)).toBe(true)
  expect((await directory.members(Dn.parse('cn=all,ou=ad,o=T'), 5)).map(({ dn }) => dn.toString())).toEqual([
    name.toString(),
  ])
  expect(await directory.bind(name, 'secret')).toBe(true)
})

test('a name that is invalid in a distinguished name is renamed everywhere else', async () => {
  const suffix = Dn.parse('ou=ad,o=T')
  const inner = new MemoryInsert([entry('sn=Lovelace,ou=ad,o=T', { sn: ['Lovelace'] })], {})
  const insert = new MappedInsert(inner, suffix, new Map([['name.familyName', 'sn']]))
  const directory = new VirtualDirectory([{ name: 'ad', suffix, insert }])
  const filter = { kind: 'equal', attribute: 'name.familyName', value: 'lovelace' } as const
  const [found] = await directory.search({ base: suffix, scope: 'sub', filter, limit: 10 })
  expect(found?.dn.toString()).toBe('sn=Lovelace,ou=ad,o=T')
  expect(found?.attributes.values('name.familyName')).toContain('Lovelace')
  expect(found?.attributes.has('sn')).toBe(false)
})

test('a part outside the root is searched by its own name, and where every tree is asked and the root has no match', async () => {
  const mount = (name: string, dn: string, isApart: boolean): Mount => ({
    name,
    suffix: Dn.parse(dn),
    insert: new MemoryInsert([entry(`uid=ada,${dn}`), entry(`uid=${name},${dn}`)]),
    ...(isApart ? { isApart } : {}),
  })
  const tree = new VirtualDirectory([
    mount('people', 'ou=people,o=Tremolo', false),
    mount('logins', 'ou=logins,o=Data', true),
    mount('inner', 'ou=inner,ou=logins,o=Data', true),
  ])
  const names = async (base: string, filter: string, everyTree = false) =>
    (await tree.search({ base: Dn.parse(base), scope: 'sub', filter: parseFilter(filter), limit: 10, everyTree })).map(
      ({ dn }) => dn.toString(),
    )
  expect(await names('', '(uid=ada)')).toEqual(['uid=ada,ou=people,o=Tremolo'])
  expect(await names('', '(uid=ada)', true)).toEqual(['uid=ada,ou=people,o=Tremolo'])
  expect(await names('', '(uid=logins)')).toEqual([])
  expect(await names('', '(uid=logins)', true)).toEqual(['uid=logins,ou=logins,o=Data'])
  expect(await names('', '(uid=inner)', true)).toEqual(['uid=inner,ou=inner,ou=logins,o=Data'])
  expect(await names('o=Data', '(uid=ada)')).toEqual(['uid=ada,ou=logins,o=Data', 'uid=ada,ou=inner,ou=logins,o=Data'])
  expect(await names('o=Tremolo', '(uid=logins)', true)).toEqual([])
})
