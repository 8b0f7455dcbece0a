import { expect } from 'vitest'
import { Dn } from '#identity/dn.ts'
import type { SearchQuery } from '#identity/search.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { hasQueries } from '#sdk/target/query-target.ts'
import { fails, isReadBack, nobody, same } from '#testing/hostile/hostile-checks.ts'
import type { Entry } from '#testing/hostile/hostile-entry.ts'
import { everythingIn, plainGroup, plainUser } from '#testing/hostile/hostile-everything.ts'
import { groupFilters, userFilters } from '#testing/hostile/hostile-filters.ts'
import type { Stage } from '#testing/hostile/hostile-stage.ts'

export type Everything = Awaited<ReturnType<typeof everythingIn>>

/** None of them is a valid position. Some targets read all their data to see that, so use few entries. */
export async function areNoPositions(stage: Stage, entries: readonly Entry[]): Promise<void> {
  const { lookups, bounds, did } = stage
  await stage.each(entries, async ({ value }) => {
    if (!stage.isDue('users position', bounds.positions)) return
    const query: SearchQuery = { offset: 0, limit: 2, after: value }
    await Promise.all([
      did('users position', () => fails(() => lookups.searchUsers(query), ['BAD_REQUEST'])),
      did('groups position', () => fails(() => lookups.searchGroups(query), ['BAD_REQUEST'])),
    ])
  })
}

export async function areFound(stage: Stage, entries: readonly Entry[]): Promise<void> {
  await stage.each(entries, (entry) => isUserFound(stage, entry))
  const { lookups } = stage
  if (!lookups.userIdIsLogin) {
    for (const { id, login } of entries.slice(0, 3)) expect((await lookups.lookupUserById(id))?.userID).toBe(login)
  }
  await stage.each(entries, (entry) => isGroupFound(stage, entry))
}

async function isUserFound(stage: Stage, entry: Entry): Promise<void> {
  const { target, lookups, names, attributes, request, did } = stage
  const { value, login } = entry
  const expected = stage.expectedUser(entry)
  await did('find by login', async () => {
    same(plainUser(await target.findUser(login, attributes, request), names), expected)
    if (login !== value) await nobody(() => target.findUser(value, attributes, request))
  })
  if (target.storedAt !== undefined) {
    await did('stored at', async () => {
      const place = await target.storedAt?.(login)
      expect(place?.system).toMatch(/./)
      same(ownName(place?.name ?? '', login), login)
      if (login !== value) await nobody(async () => target.storedAt?.(value))
    })
  }
  if (hasQueries(target)) await did('read rows', () => isReadBack(target, login))
  await did('look up by login', async () => {
    const found = await lookups.lookupUserByLogin(login)
    same(plainUser(found, names), expected)
    entry.id = found?.id ?? login
    if (login !== value) await nobody(() => lookups.lookupUserByLogin(value))
  })
  await did('look up by id', async () => {
    if (!lookups.userIdIsLogin || login !== value) await nobody(() => lookups.lookupUserById(value))
    else same(plainUser(await lookups.lookupUserById(value), names), expected)
  })
}

/** The login in the name of a stored account: the name itself, or a value of the first part of a distinguished name. */
function ownName(name: string, login: string): string | undefined {
  if (name === login) return name
  const [rdn = []] = isDn(name) ? Dn.parse(name).rdns : []
  return rdn.map(({ value }) => value).find((value) => value === login) ?? name
}

function isDn(name: string): boolean {
  try {
    return Dn.parse(name).rdns.length > 1
  } catch {
    return false
  }
}

async function isGroupFound(stage: Stage, entry: Entry): Promise<void> {
  const { lookups, groups, given, names, did } = stage
  const { value, group } = entry
  const expected = stage.expectedGroup(entry)
  if (groups !== undefined) {
    await did('find group', async () => {
      same(plainGroup(await groups.findGroup(group), names), expected)
      if (group !== value) await nobody(() => groups.findGroup(value))
    })
  }
  await did(['look up group by name', 'members of group'], async () => {
    const found = await lookups.lookupGroupByName(group)
    same(plainGroup(found, names), expected)
    const member = lookups.groupMembersAreIds ? entry.id : entry.login
    if (given === undefined) same(found?.members, [member])
    else expect(found?.members.includes(member)).toBe(true)
    if (group !== value) await nobody(() => lookups.lookupGroupByName(value))
  })
  await did('look up group by id', async () => {
    if (lookups.groupHasOwnId || group !== value) await nobody(() => lookups.lookupGroupById(value))
    else same((await lookups.lookupGroupById(value, { members: false }))?.name, group)
  })
}

/** By filters with a pack of values each; rejected values match no user. */
export async function areSearched(stage: Stage, entries: readonly Entry[]): Promise<void> {
  const { lookups, given, names, width, pack, bounds, did } = stage
  const { many } = names
  const packs = Array.from({ length: Math.ceil(entries.length / pack) }, (_, i) =>
    entries.slice(i * pack, (i + 1) * pack),
  )
  const first = async (page: Promise<{ readonly items: readonly unknown[] }>) => (await page).items[0]
  await stage.each(entries, async (entry) => {
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
    Array.from({ length: many === undefined ? 1 : bounds.perName }, (_, k) => ({ some, k })),
  )
  for (const [operation, filterOf] of userFilters(names)) {
    await inParallel(turns, width, ({ some, k }) => {
      const filter = { kind: 'or', filters: some.map((entry, i) => filterOf(entry, i, k)) } as const
      const search = async () => {
        const page = await lookups.searchUsers({ filter, offset: 0, limit: some.length + 5 })
        same(page.items.map(({ userID }) => userID).sort(), some.map(({ login }) => login).sort())
      }
      return did(operation, search, some.length)
    })
  }
  for (const [operation, filterOf] of groupFilters(names, given !== undefined)) {
    await inParallel(packs, width, (some) => {
      const filter = { kind: 'or', filters: some.map((entry, i) => filterOf(entry, i, 0)) } as const
      const search = async () => {
        const page = await lookups.searchGroups({ filter, offset: 0, limit: some.length + 5 })
        const expected = given === undefined ? some.map(({ group }) => group) : []
        same(page.items.map(({ name }) => name).sort(), expected.sort())
      }
      return did(operation, search, some.length)
    })
  }
}

/** All entries, page by page and in two orders: each is correct, and the others are unchanged. */
export async function arePaged(stage: Stage, entries: readonly Entry[], before: Everything): Promise<void> {
  const { lookups, names, given } = stage
  const now = await everythingIn(lookups, names, stage.pageSize)
  const found = new Map(now.users.map((user) => [user.userID, user]))
  for (const entry of entries) {
    same(plainUser(found.get(entry.login), names), stage.expectedUser(entry))
    found.delete(entry.login)
  }
  expect([...found.values()]).toEqual(before.users)
  const order = { attribute: names.one ?? 'userID', descending: true, caseExact: false } as const
  const sorted = await everythingIn(lookups, names, stage.pageSize, order)
  same(sorted.users.map(({ userID }) => userID).sort(), now.users.map(({ userID }) => userID).sort())
  if (given !== undefined) return
  const others = new Map(now.groups.map((group) => [group.name, group]))
  for (const entry of entries) {
    same(plainGroup(others.get(entry.group), names), stage.expectedGroup(entry))
    others.delete(entry.group)
  }
  expect([...others.values()]).toEqual(before.groups)
}
