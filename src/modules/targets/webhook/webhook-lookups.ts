import type { Filter } from '#identity/filter/ast.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import type { User } from '#identity/user.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { groupCollection, userCollection } from '#modules/shared/targets/collections.ts'
import type { LookupTarget, SearchQuery, Target } from '#sdk/target.ts'
import type { Narrowing, WebhookApi } from './webhook-api.ts'
import type { Narrowings } from './webhook-config.ts'

/** How many users' groups are asked for at a time. */
const width = 8

/** The API finds or narrows what it can; the rest is done in memory, within the bound of its lists. */
export function lookupsOf(api: WebhookApi): Omit<LookupTarget, keyof Target> {
  const { config } = api
  const userIdIsLogin = config.user.id === undefined
  const groupHasOwnId = config.group.id !== undefined

  async function candidates(filter: Filter | undefined): Promise<User[]> {
    const login = equalValue(filter, 'userid')
    if (login !== undefined) return listOf(await api.findUser(login))
    const id = userIdIsLogin ? undefined : equalValue(filter, 'id')
    if (id !== undefined) return listOf(await api.findUserById(id))
    return api.listUsers(narrowing(filter, config.usersBy))
  }

  async function searchUsers(query: SearchQuery) {
    const { filter, sort, attributes } = query
    const found = await candidates(filter)
    const needsGroups = mentions(filter, 'groups') || sort?.attribute.toLowerCase() === 'groups'
    const page = pageInMemory(needsGroups ? await withGroups(api, found) : found, query, userCollection)
    const items = needsGroups ? page.items : await withGroups(api, page.items)
    if (attributes === undefined) return { ...page, items }
    return { ...page, items: items.map((user) => ({ ...user, attributes: user.attributes.pick(attributes) })) }
  }

  return {
    groupMembersAreIds: config.membersAreIds,
    userIdIsLogin,
    groupHasOwnId,
    lookupUserByLogin: (login) => api.findUser(login),
    lookupUserById: (id) => (userIdIsLogin ? api.findUser(id) : api.findUserById(id)),
    lookupGroupByName: async (name, options) => {
      const group = await api.findGroup(name)
      return group && options?.members !== false ? api.withMembers(group) : group
    },
    lookupGroupById: async (id, options) => {
      const group = await (groupHasOwnId ? api.findGroupById(id) : api.findGroup(id))
      return group && options?.members !== false ? api.withMembers(group) : group
    },
    searchUsers,
    searchGroups: async (query) => {
      const name = equalValue(query.filter, 'name')
      const groups =
        name === undefined
          ? await api.listGroups(narrowing(query.filter, config.groupsBy))
          : listOf(await api.findGroup(name))
      return pageInMemory(groups, query, groupCollection)
    },
  }
}

async function withGroups(api: WebhookApi, users: readonly User[]): Promise<User[]> {
  if (api.config.operations.userGroups === undefined) return [...users]
  return inParallel(users, width, (user) => api.withGroups(user))
}

const listOf = <T>(item: T | undefined): T[] => (item === undefined ? [] : [item])

/** Conditions that all must hold. */
const conditions = (filter: Filter | undefined): readonly Filter[] =>
  filter === undefined ? [] : filter.kind === 'and' ? filter.filters.flatMap(conditions) : [filter]

/** The value that every match has in the attribute, which is given in small letters. */
function equalValue(filter: Filter | undefined, attribute: string): string | undefined {
  for (const condition of conditions(filter)) {
    if (condition.kind === 'equal' && condition.attribute.toLowerCase() === attribute) return condition.value
  }
  return undefined
}

function narrowing(filter: Filter | undefined, by: Narrowings): Narrowing | undefined {
  for (const [attribute, template] of by) {
    const value = equalValue(filter, attribute)
    if (value !== undefined) return { template, value }
  }
  return undefined
}

function mentions(filter: Filter | undefined, attribute: string): boolean {
  if (filter === undefined) return false
  if (filter.kind === 'not') return mentions(filter.filter, attribute)
  if (filter.kind === 'and' || filter.kind === 'or') return filter.filters.some((inner) => mentions(inner, attribute))
  return filter.attribute.toLowerCase() === attribute
}
