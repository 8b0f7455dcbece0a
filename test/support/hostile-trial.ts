import { expect } from 'vitest'
import { inParallel } from '#kernel/in-parallel.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, hasLookups, hasPasswords, type LookupTarget, type Target } from '#sdk/target.ts'
import { accepted, fails, isReadBack, nobody, same } from '#testing/hostile-checks.ts'
import {
  expectTargetCovered,
  type Tally,
  type TargetOperation,
  type TargetRowName,
  targetCoverage,
} from '#testing/hostile-coverage.ts'
import { type Entry, entryOf, type Place, type TrialOptions, unstorable } from '#testing/hostile-entry.ts'
import { everythingIn, type PlainGroup, type PlainUser, plainGroup, plainUser } from '#testing/hostile-everything.ts'
import { type FilterNames, groupFilters, userFilters } from '#testing/hostile-filters.ts'
import { harmless, hostileValues, other } from '#testing/hostile-values.ts'

const sentinels = ['*', '%', 'bystander', "' or 1=1 --", 'O"Brien\\', '_', '*)(uid=*'] as const

/**
 * Puts each value through every operation that the target offers, as many as its row of the table says. After each
 * operation what comes back is what went in, and whoever else is there is as before, version and all.
 */
export async function hostileTrial(row: TargetRowName, target: Target, options: TrialOptions): Promise<void> {
  if (!hasLookups(target)) throw new Error('a target without look-ups cannot be asked what it holds')
  const { request } = targetFixture(target, { attributes: ['a', 'b', 'c'], groups: ['a', 'b', 'c'] })
  const { batch = 100, width = 8, pack = 20, mayRefuse = unstorable, groups: given } = options
  const groups = hasGroups(target) ? target : undefined
  const maker = groups ?? options.groupMaker
  const [many, one] = options.attributes
  const attributes: readonly string[] = options.attributes
  const groupAttribute = options.groupAttribute === undefined ? 'description' : (options.groupAttribute ?? undefined)
  const names: FilterNames = {
    many,
    one,
    text: maker === undefined ? undefined : groupAttribute,
    longest: options.longestInFilter ?? Infinity,
  }
  const { values: total, perName: perUser, passwords, positions, versions } = targetCoverage[row].bounds
  const tally: Tally<TargetOperation> = {}
  const count = (operation: TargetOperation, more = 1): void => {
    tally[operation] = (tally[operation] ?? 0) + more
  }

  const describe = (text: string) => (groupAttribute === undefined ? {} : { [groupAttribute]: [text] })
  const attributesOf = (entry: Entry) =>
    many === undefined || one === undefined ? {} : { [many]: entry.many, [one]: [entry.one] }
  const asUser = (entry: Entry) => userOf(entry.login, attributesOf(entry), [entry.home.group])
  const expectedUser = (entry: Entry): PlainUser => ({
    userID: entry.login,
    many: many === undefined ? [] : [...entry.many].sort(),
    one: many === undefined ? [] : [entry.one],
    groups: [entry.home.group],
  })
  const expectedGroup = (entry: Entry): PlainGroup => ({
    name: entry.group,
    text: names.text === undefined ? [] : [entry.text],
  })
  const may = (places: readonly Place[], values: readonly string[]): boolean =>
    places.some((place) => values.some((value) => mayRefuse(place, value)))
  const each = (entries: readonly Entry[], work: (entry: Entry, i: number) => Promise<void>) =>
    inParallel(entries, width, work)

  async function come(entries: readonly Entry[]): Promise<void> {
    await each(entries, async (entry) => {
      const { value } = entry
      if (maker === undefined) return
      const create = () => maker.createGroup(entry.group, describe(entry.text), request)
      if (!(await accepted(create, may(['group', 'text of group'], [value])))) {
        if (mayRefuse('group', value)) entry.group = harmless(value)
        if (mayRefuse('text of group', value)) entry.text = harmless(value)
        await create()
      }
      if (maker === groups) count('create group')
    })
    await each(entries, async (entry) => {
      const { value } = entry
      const create = () => target.createUser(asUser(entry), attributes, request)
      if (
        !(await accepted(
          create,
          may(maker === undefined ? ['login', 'value', 'group'] : ['login', 'value'], entry.values),
        ))
      ) {
        if (mayRefuse('login', value)) entry.login = harmless(value)
        if (mayRefuse('group', value) && maker === undefined && given === undefined) entry.group = harmless(value)
        if (mayRefuse('value', value)) entry.one = harmless(value)
        entry.many = entry.many.map((one) => (mayRefuse('value', one) ? harmless(one) : one))
        await create()
      }
      count('create user', entry.values.length)
      if (!hasPasswords(target) || (tally['set password'] ?? 0) >= passwords) return
      count('set password')
      await accepted(() => target.setUserPassword(asUser(entry), value, request), may(['password'], [value]))
    })
  }

  async function areFound(entries: readonly Entry[], lookups: LookupTarget): Promise<void> {
    await each(entries, async (entry) => {
      const { value, login } = entry
      same(plainUser(await target.findUser(login, attributes, request), names), expectedUser(entry))
      if (login !== value) await nobody(() => target.findUser(value, attributes, request))
      count('find by login')
      if (await isReadBack(target, login)) count('read rows')
      const found = await lookups.lookupUserByLogin(login)
      same(plainUser(found, names), expectedUser(entry))
      entry.id = found?.id ?? login
      if (login !== value) await nobody(() => lookups.lookupUserByLogin(value))
      count('look up by login')
      if (!lookups.userIdIsLogin || login !== value) await nobody(() => lookups.lookupUserById(value))
      else same(plainUser(await lookups.lookupUserById(value), names), expectedUser(entry))
      count('look up by id')
      if ((tally['users position'] ?? 0) >= positions) return
      count('users position')
      count('groups position')
      await fails(() => lookups.searchUsers({ offset: 0, limit: 2, after: value }), ['BAD_REQUEST'])
      await fails(() => lookups.searchGroups({ offset: 0, limit: 2, after: value }), ['BAD_REQUEST'])
    })
    if (!lookups.userIdIsLogin) {
      for (const { id, login } of entries.slice(0, 3)) expect((await lookups.lookupUserById(id))?.userID).toBe(login)
    }
    await each(entries, async (entry) => {
      const { value, group } = entry
      if (groups !== undefined) {
        same(plainGroup(await groups.findGroup(group), names), expectedGroup(entry))
        if (group !== value) await nobody(() => groups.findGroup(value))
        count('find group')
      }
      const found = await lookups.lookupGroupByName(group)
      same(plainGroup(found, names), expectedGroup(entry))
      const member = lookups.groupMembersAreIds ? entry.id : entry.login
      if (given === undefined) same(found?.members, [member])
      else expect(found?.members).toContain(member)
      if (group !== value) await nobody(() => lookups.lookupGroupByName(value))
      count('look up group by name')
      count('members of group')
      if (lookups.groupHasOwnId || group !== value) await nobody(() => lookups.lookupGroupById(value))
      else same((await lookups.lookupGroupById(value, { members: false }))?.name, group)
      count('look up group by id')
    })
  }

  async function areSearched(entries: readonly Entry[], lookups: LookupTarget): Promise<void> {
    const packs = Array.from({ length: Math.ceil(entries.length / pack) }, (_, i) =>
      entries.slice(i * pack, (i + 1) * pack),
    )
    const first = async (page: Promise<{ readonly items: readonly unknown[] }>) => (await page).items[0]
    await each(entries, async (entry) => {
      const query = (attribute: string, value: string) =>
        ({ filter: { kind: 'equal', attribute, value }, offset: 0, limit: 2 }) as const
      for (const [k, value] of entry.values.entries()) {
        if (many === undefined || entry.many[k] === value) continue
        await nobody(() => first(lookups.searchUsers(query(many, value))))
      }
      if (given !== undefined || entry.group === entry.value) return
      await nobody(() => first(lookups.searchGroups(query('name', entry.value))))
    })
    const turns = packs.flatMap((some) =>
      Array.from({ length: many === undefined ? 1 : perUser }, (_, k) => ({ some, k })),
    )
    for (const [operation, filterOf] of userFilters(names)) {
      await inParallel(turns, width, async ({ some, k }) => {
        const filter = { kind: 'or', filters: some.map((entry, i) => filterOf(entry, i, k)) } as const
        const page = await lookups.searchUsers({ filter, offset: 0, limit: some.length + 5 })
        expect(page.items.map(({ userID }) => userID).sort()).toEqual(some.map(({ login }) => login).sort())
        count(operation, some.length)
      })
    }
    for (const [operation, filterOf] of groupFilters(names, given !== undefined)) {
      await inParallel(packs, width, async (some) => {
        const filter = { kind: 'or', filters: some.map((entry, i) => filterOf(entry, i, 0)) } as const
        const page = await lookups.searchGroups({ filter, offset: 0, limit: some.length + 5 })
        const expected = given === undefined ? some.map(({ group }) => group) : []
        expect(page.items.map(({ name }) => name).sort()).toEqual(expected.sort())
        count(operation, some.length)
      })
    }
  }

  /** All that is there, page by page and in two orders: every entry as it should be, and the others as they were. */
  async function arePaged(entries: readonly Entry[], lookups: LookupTarget, before: Everything): Promise<void> {
    const now = await everythingIn(lookups, names)
    const found = new Map(now.users.map((user) => [user.userID, user]))
    for (const entry of entries) {
      same(plainUser(found.get(entry.login), names), expectedUser(entry))
      found.delete(entry.login)
    }
    expect([...found.values()]).toEqual(before.users)
    const sorted = await everythingIn(lookups, names, {
      attribute: one ?? 'userID',
      descending: true,
      caseExact: false,
    })
    expect(sorted.users.map(({ userID }) => userID).sort()).toEqual(now.users.map(({ userID }) => userID).sort())
    if (given !== undefined) return
    const others = new Map(now.groups.map((group) => [group.name, group]))
    for (const entry of entries) {
      same(plainGroup(others.get(entry.group), names), expectedGroup(entry))
      others.delete(entry.group)
    }
    expect([...others.values()]).toEqual(before.groups)
  }

  /** Each user leaves the group of its own value for that of the next. */
  async function change(entries: readonly Entry[]): Promise<void> {
    const isBound = (operation: TargetOperation): boolean =>
      target.keepsVersions === true && (tally[operation] ?? 0) < versions
    await each(entries, async (entry, i) => {
      const { value } = entry
      if (isBound('delete user of version')) {
        count('change user of version')
        count('delete user of version')
        const bound = syncOptions(attributes, { expectedVersion: value })
        await fails(() => target.syncUser(userOf(entry.login), bound, request), ['VERSION_MISMATCH'])
        const deleting = () => target.deleteUser(userOf(entry.login), request, { expectedVersion: value })
        await fails(deleting, ['VERSION_MISMATCH'])
      }
      entry.one = other(entry.one)
      const [kept = '', second = ''] = entry.values.length === 1 ? entry.many.slice(1) : ['', '']
      entry.many =
        second === '' && kept !== ''
          ? [kept, `${kept}+`]
          : entry.many.map((text, k) => (k % 2 === 0 ? other(text) : text))
      entry.home = entries[(i + 1) % entries.length] ?? entry
      const newUserID = other(entry.login)
      const renames = target.renamesUsers === true
      await target.syncUser(asUser(entry), syncOptions(attributes, renames ? { newUserID } : {}), request)
      count('change attributes', entry.values.length)
      count('change memberships')
      if (!renames) return
      entry.login = newUserID
      count('rename user')
    })
    if (groups === undefined) return
    await each(entries, async (entry) => {
      const { value } = entry
      if (isBound('delete group of version')) {
        count('delete group of version')
        const deleting = () => groups.deleteGroup(entry.group, request, { expectedVersion: value })
        await fails(deleting, ['VERSION_MISMATCH'])
      }
      count('rename group')
      count('change group')
      const change = { newName: other(entry.group), attributes: describe(other(entry.text)) }
      if (options.fixedGroups === true) {
        return fails(() => groups.updateGroup(entry.group, change, request), ['NOT_SUPPORTED'])
      }
      await groups.updateGroup(entry.group, change, request)
      entry.group = other(entry.group)
      entry.text = other(entry.text)
    })
  }

  async function go(entries: readonly Entry[]): Promise<void> {
    await each(entries, async (entry) => {
      await target.deleteUser(userOf(entry.login), request)
      count('delete user')
      await maker?.deleteGroup(entry.group, request)
      if (groups !== undefined) count('delete group')
    })
  }

  async function run(lookups: LookupTarget): Promise<void> {
    for (const name of sentinels) {
      await maker?.createGroup(name, describe(`text of ${name}`), request)
      const values = many === undefined || one === undefined ? {} : { [many]: [name, 'many'], [one]: [name] }
      await target.createUser(userOf(name, values, [given?.[0] ?? name]), attributes, request)
    }
    const before = await everythingIn(lookups, names)
    expect(before.users).toHaveLength(sentinels.length)
    const values = hostileValues(total, 20_261)
    for (let start = 0; start < values.length; start += batch * perUser) {
      const size = Math.min(batch, Math.ceil((values.length - start) / perUser))
      const entries = Array.from({ length: size }, (_, i) => {
        const at = start + i * perUser
        return entryOf(values.slice(at, at + perUser), given?.[i % given.length])
      })
      await come(entries)
      await areFound(entries, lookups)
      await areSearched(entries, lookups)
      await arePaged(entries, lookups, before)
      await change(entries)
      await arePaged(entries, lookups, before)
      const inAttributes = entries.reduce((sum, entry) => sum + entry.values.length, 0)
      for (const operation of ['users page', 'users sorted'] as const) count(operation, inAttributes)
      count('groups page', entries.length)
      await go(entries)
      const now = await everythingIn(lookups, names)
      expect(now.users).toEqual(before.users)
      if (given === undefined) expect(now.groups).toEqual(before.groups)
    }
  }

  await run(target)
  expectTargetCovered(row, target, tally)
}

type Everything = Awaited<ReturnType<typeof everythingIn>>
