import { expect } from 'vitest'
import type { Group } from '#identity/group.ts'
import type { SearchPage, SearchQuery, SortOrder } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { LookupTarget } from '#sdk/target/target.ts'
import type { FilterNames } from '#testing/hostile/hostile-filters.ts'

export interface PlainUser {
  readonly userID: string
  readonly many: readonly string[]
  readonly one: readonly string[]
  readonly groups: readonly string[]
}

export interface PlainGroup {
  readonly name: string
  readonly text: readonly string[]
}

export function plainUser(user: User | undefined, { many, one }: FilterNames): PlainUser | undefined {
  return (
    user && {
      userID: user.userID,
      many: many === undefined ? [] : [...user.attributes.values(many)].sort(),
      one: one === undefined ? [] : user.attributes.values(one),
      groups: user.groups,
    }
  )
}

export function plainGroup(group: Group | undefined, { text }: FilterNames): PlainGroup | undefined {
  if (group === undefined) return undefined
  if (text === undefined) return { name: group.name, text: [] }
  const held = group.attributes?.values(text) ?? []
  return { name: group.name, text: held.length > 0 || group.description === undefined ? held : [group.description] }
}

/** Users and groups with all their data, page by page, none twice. */
export async function everythingIn(target: LookupTarget, names: FilterNames, pageSize: number, sort?: SortOrder) {
  const order = sort === undefined ? {} : { sort }
  const users = await pages(pageSize, (query) => target.searchUsers({ ...query, ...order }))
  const groups = sort === undefined ? await pages(pageSize, (query) => target.searchGroups(query)) : []
  expect(new Set(users.map(({ userID }) => userID)).size).toBe(users.length)
  expect(new Set(groups.map(({ name }) => name)).size).toBe(groups.length)
  return {
    users: users.map((user) => ({ ...user, plain: plainUser(user, names) })),
    groups: groups.map(({ members: _, ...group }) => ({
      ...group,
      members: [],
      plain: plainGroup({ ...group, members: [] }, names),
    })),
  }
}

async function pages<T>(limit: number, search: (query: SearchQuery) => Promise<SearchPage<T>>): Promise<T[]> {
  const found: T[] = []
  for (let page: SearchPage<T> | undefined; ; ) {
    const at: Pick<SearchQuery, 'after' | 'offset'> =
      page?.next === undefined ? { offset: found.length } : { offset: 0, after: page.next }
    page = await search({ ...at, limit })
    found.push(...page.items)
    if (page.items.length === 0 || found.length >= page.total) {
      expect(found).toHaveLength(page.total)
      return found
    }
  }
}
