import { groupCollection, userCollection, withAttributes } from '#adapters/targets/shared/collections.ts'
import {
  type GroupStore,
  noGroup,
  reconcileGroups,
  type StoredGroup,
} from '#adapters/targets/shared/group-reconciler.ts'
import { inQueue } from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import { groupChanges } from '#identity/entry-changes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { GroupTarget, LookupTarget, StorableAttributes, Target, TargetChange } from '#sdk/target/target.ts'
import { ApiCaller, settle } from './api-caller.ts'
import { type BodyValues, refusedValue } from './templates.ts'
import { type Narrowing, WebhookApi } from './webhook-api.ts'
import { type Narrowings, storedUserAttributes, type WebhookConfig, writtenBy, writtenOnce } from './webhook-config.ts'
import { webhookUsers } from './webhook-users.ts'

/** Makes no request before the first call. */
export async function openWebhookTarget(config: WebhookConfig, host: ModuleHost): Promise<Target> {
  const { can, operations } = config
  const api = new WebhookApi(config, host.name, await ApiCaller.open(config.connection, host.name, host.clock))
  const storable: StorableAttributes = {
    users: storedUserAttributes(config),
    groups: writtenBy(config.group, operations.createGroup, operations.updateGroup),
    single: {
      users: writtenOnce(operations.createUser, operations.updateUser),
      groups: writtenOnce(operations.createGroup, operations.updateGroup),
    },
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

/** Conditions of a conjunction. */
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

function webhookGroups(api: WebhookApi): Omit<GroupTarget, keyof Target> {
  const { operations } = api.config

  /** Throws BAD_REQUEST for an attribute without a placeholder in the request. */
  function requirePlaces(operation: 'createGroup' | 'updateGroup', names: readonly string[]): void {
    const places = new Set(operations[operation]?.body?.places.map(({ name }) => name.toLowerCase()))
    const odd = names.find((name) => !places.has(name.toLowerCase()))
    if (odd !== undefined) throw refusedValue(odd, `has no place in ${operation}`)
  }

  /** An empty change, which only requests a new version, sends the unchanged group. */
  function updateBody(wanted: Group, before: Group, changes: readonly TargetChange[]): BodyValues {
    const values = valuesOf(wanted, before)
    if (operations.updateGroup?.request.method !== 'PATCH' || changes.length === 0) return { values }
    const names = new Set(
      changes.map(({ subject, attribute }) => (subject === 'entry' ? 'group' : attribute.toLowerCase())),
    )
    return { values, changed: (name) => alwaysSent.has(name) || names.has(name.toLowerCase()) }
  }

  const store: GroupStore<StoredGroup> = {
    touches: true,
    read: async (name, request) => {
      const group = await api.findGroup(name, request)
      return group && { group }
    },
    create: async (name, attributes, { changes, request, isDone }) => {
      requirePlaces('createGroup', attributes.names())
      const body = { values: valuesOf({ id: '', name, members: [], attributes }) }
      await settle(() => api.write('createGroup', { group: name }, { body, request }), isDone)
      return changes
    },
    write: async ({ group: before }, { newName, attributes, changes, request }) => {
      requirePlaces(
        'updateGroup',
        changes.flatMap(({ subject, attribute }) => (subject === 'attribute' ? [attribute] : [])),
      )
      const values = before.attributes?.clone() ?? new Attributes()
      for (const [name, list] of attributes) values.set(name, list)
      const body = updateBody({ ...before, name: newName, attributes: values }, before, changes)
      await settle(
        async () => {
          if (!(await api.write('updateGroup', placesOf(before), { body, request }))) throw noGroup(before.name)
        },
        async () => {
          const now = await api.findGroup(newName, request)
          return now !== undefined && groupChanges(now, newName, attributes).length === 0
        },
      )
      return changes
    },
    delete: async ({ group }, { changes, expectedVersion, request }) => {
      await settle(
        () => api.write('deleteGroup', { ...placesOf(group), version: expectedVersion }, { request }),
        async () => (await api.findGroup(group.name, request)) === undefined,
      )
      return changes
    },
  }
  return { findGroup: (name) => api.findGroup(name), ...reconcileGroups(inQueue(store)) }
}

/** These identify the group, and never change. */
const alwaysSent = new Set(['groupId', 'version'])

const placesOf = ({ name, id, version }: Group) => ({ group: name, groupId: id, version })

const valuesOf =
  (wanted: Group, before?: Group) =>
  (name: string): readonly string[] => {
    if (name === 'group') return [wanted.name]
    if (name === 'groupId') return before === undefined ? [] : [before.id]
    if (name === 'version') return before?.version === undefined ? [] : [before.version]
    return wanted.attributes?.values(name) ?? []
  }
