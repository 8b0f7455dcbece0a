import type { Filter } from '#identity/filter/ast.ts'
import { pageInMemory } from '#identity/page-in-memory.ts'
import type { User } from '#identity/user.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { groupCollection, userCollection, withAttributes } from '#modules/shared/targets/collections.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import type { LookupTarget, SearchQuery, StorableAttributes, Target } from '#sdk/target/target.ts'
import { ApiCaller } from './api-caller.ts'
import { EntryReader, ListReader, type Narrowing, WebhookApi } from './webhook-api.ts'
import type { EntryPaths, Narrowings, Operation, WebhookConfig } from './webhook-config.ts'
import { webhookGroups } from './webhook-groups.ts'
import { webhookUsers } from './webhook-users.ts'

/** Makes no request before the first call. */
export async function openWebhookTarget(
  config: WebhookConfig,
  host: Pick<ModuleHost, 'name' | 'clock'>,
): Promise<Target> {
  const { can, limits, operations } = config
  const caller = await ApiCaller.open(config.connection, host.name, host.clock)
  const reader = new EntryReader(host.name)
  const api = new WebhookApi(config, caller, reader, new ListReader(caller, reader, limits, host.name))
  const storable: StorableAttributes = {
    users: written(config.user, operations.createUser, operations.updateUser),
    groups: written(config.group, operations.createGroup, operations.updateGroup),
  }
  return {
    storable: async () => storable,
    renamesUsers: can.renames,
    keepsVersions: can.versions,
    ...webhookUsers(api),
    ...(can.lookups ? lookupsOf(api) : {}),
    ...(can.groups ? webhookGroups(api) : {}),
    close: () => api.close(),
  } satisfies Target
}

/** The attributes that the bodies of these requests have places for. */
function written({ attributes, aliases }: EntryPaths, ...operations: readonly (Operation | undefined)[]): Set<string> {
  const places = new Set(operations.flatMap((one) => one?.body?.places ?? []).map(({ name }) => name.toLowerCase()))
  const named = [...attributes.keys()].map((name) => name.toLowerCase()).filter((name) => places.has(name))
  return new Set([...named, ...aliases])
}

/** The number of users whose groups are read at a time. */
const width = 8

/** The API finds or narrows what it can; the rest is filtered in memory, up to `maxEntries`. */
function lookupsOf(api: WebhookApi): Omit<LookupTarget, keyof Target> {
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
    const { filter, sort } = query
    const found = await candidates(filter)
    const needsGroups = mentions(filter, 'groups') || sort?.attribute.toLowerCase() === 'groups'
    const page = pageInMemory(needsGroups ? await withGroups(api, found) : found, query, userCollection)
    const items = needsGroups ? page.items : await withGroups(api, page.items)
    return withAttributes({ ...page, items }, query)
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

/** The value that every match has in the attribute, whose name is in lower case. */
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
