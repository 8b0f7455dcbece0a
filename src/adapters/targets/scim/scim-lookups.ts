import { groupCollection, userCollection } from '#adapters/targets/shared/collections.ts'
import type { Filter } from '#identity/filter/ast.ts'
import type { Group, NamedGroup } from '#identity/group.ts'
import type { SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { type FilterName, slotName, timeName } from './filter-to-scim.ts'
import { groupFacts } from './profiles.ts'
import { ResourceSearch, type Searched, theOne } from './resource-search.ts'
import {
  modelOf,
  readGroup,
  readUser,
  resourceAt,
  type ScimService,
  type ServerGroup,
  type ServerUser,
  type ServiceModel,
} from './scim-service.ts'

const width = 8

/** Finds users with their groups. */
export class UserLookups {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly search: ResourceSearch<User>

  constructor(service: ScimService, groups: GroupLookups) {
    this.#service = service
    this.#groups = groups
    const searched: Searched<User> = {
      endpoint: '/Users',
      collection: userCollection,
      read: (raw, model) => readUser(raw, model, service),
      nameOf: userFilterName,
      equal: service.profile.users.filters,
      excluded: () => undefined,
      complete: (found) => inParallel(found, width, (user) => this.withGroups(user)),
    }
    this.search = new ResourceSearch(service, searched)
  }

  async byLogin(login: string): Promise<ServerUser | undefined> {
    if (login === '') return undefined
    const found = await this.search.having('userID', login, await modelOf(this.#service))
    return theOne(found, ({ entry }) => entry.userID === login, 'users')
  }

  async byId(id: string): Promise<ServerUser | undefined> {
    const model = await modelOf(this.#service)
    const raw = await resourceAt(this.#service, '/Users', id)
    if (raw === undefined) return undefined
    const user = readUser(raw, model, this.#service)
    if (user.entry.id !== id)
      throw new GatewayError('TARGET_FAILED', `target "${this.#service.name}" gave another user`)
    return this.withGroups(user)
  }

  /** Reads the names of groups that the resource does not contain. */
  async withGroups(user: ServerUser): Promise<ServerUser> {
    const { entry } = user
    const inGroups = (groups: readonly NamedGroup[]): ServerUser => ({
      ...user,
      entry: { ...entry, groups: groups.map(({ name }) => name), groupIds: groups.map(({ id }) => id) },
    })
    if (this.#service.memberships === 'group') return inGroups(await this.#groups.of(entry.id))
    if (entry.groups.every((name) => name !== '')) return user
    const known = (entry.groupIds ?? []).map((id, i) => ({ id, name: entry.groups[i] ?? '' }))
    const found = await inParallel(known, width, async ({ id, name }) => {
      const read = name === '' ? (await this.#groups.byId(id, false))?.entry.name : name
      // A deleted group has no members.
      return read === undefined ? [] : [{ id, name: read }]
    })
    return inGroups(found.flat())
  }
}

function userFilterName(attribute: string, { features, users }: ServiceModel): FilterName {
  const own = (name: string, more: object): FilterName => {
    const path = features.users.resolveAttribute(name, true)
    return path === undefined
      ? { kind: 'unknown' }
      : { kind: 'path', path, leaf: path.attribute, always: true, ...more }
  }
  switch (attribute.toLowerCase()) {
    case 'userid':
    case 'username':
      return own('userName', {})
    case 'id':
      return own('id', { exact: true })
    case 'groups':
      return { kind: 'unknown' }
    default:
      return timeName(attribute, features.users) ?? slotName(attribute, users)
  }
}

const maxGroups = 1000

const havingMember = (value: string): Filter => ({ kind: 'equal', attribute: 'members', value })

/** Finds groups; with members only on request, since they may be many. */
export class GroupLookups {
  readonly #service: ScimService
  readonly search: ResourceSearch<Group>
  /** Whether the server of this model evaluates filters by member. */
  #filtering: { readonly of: ServiceModel; readonly isServed: boolean } | undefined

  constructor(service: ScimService) {
    this.#service = service
    const searched: Searched<Group> = {
      endpoint: '/Groups',
      // Groups are members under their ids, like users.
      collection: {
        ...groupCollection,
        source: (group) =>
          groupCollection.source({
            ...group,
            members: [...group.members, ...(group.memberGroups ?? []).map(({ id }) => id)],
          }),
      },
      read: (raw, model) => readGroup(raw, model, service),
      nameOf: groupFilterName,
      equal: groupFacts(service.profile).filters,
      excluded: ({ filter }) => (filter !== undefined && asksForMembers(filter) ? undefined : 'members'),
      complete: async (found) => found,
    }
    this.search = new ResourceSearch(service, searched)
  }

  async byName(name: string, members: boolean): Promise<ServerGroup | undefined> {
    if (name === '') return undefined
    const found = await this.search.having('name', name, await modelOf(this.#service))
    const one = theOne(found, ({ entry }) => entry.name === name, 'groups')
    return one === undefined || !members ? one : this.byId(one.entry.id, true)
  }

  async byId(id: string, members: boolean): Promise<ServerGroup | undefined> {
    const model = await modelOf(this.#service)
    const raw = await resourceAt(this.#service, '/Groups', id, members ? {} : { excludedAttributes: 'members' })
    if (raw === undefined) return undefined
    const group = readGroup(raw, model, this.#service)
    if (group.entry.id !== id) {
      throw new GatewayError('TARGET_FAILED', `target "${this.#service.name}" gave another group`)
    }
    return members ? this.#withNames(group) : { ...group, entry: withoutMembers(group.entry) }
  }

  /** The groups that a user is a member of; without their other members, if the server can filter by member. */
  async of(userId: string): Promise<readonly Group[]> {
    if (await this.filtersBy(userId)) return this.#having(userId, 'members')
    return (await this.#having(userId)).filter(({ members }) => members.includes(userId))
  }

  /** The groups that a group is a direct member of; without their other members, if the server can filter by member. */
  async holding(groupId: string): Promise<readonly Group[]> {
    if (await this.filtersBy(groupId)) return this.#having(groupId, 'members')
    const found = await this.#having(groupId)
    return found.filter(({ memberGroups = [] }) => memberGroups.some(({ id }) => id === groupId))
  }

  /**
   * Whether the server's answer to a filter by this member can be believed without seeing the members. The letter case of
   * an id counts, which not every server knows, unless the id is a number or a UUID. Ids are unique across users and
   * groups (RFC 7643 3.1), so the id alone names the member.
   */
  async filtersBy(member: string): Promise<boolean> {
    if (groupFacts(this.#service.profile).filters !== undefined) return false
    const model = await modelOf(this.#service)
    const { features } = model
    const isExact = features.groups.resolveAttribute('members.value', true)?.sub?.caseExact === true
    if (!features.filter || !(isExact || /^[0-9a-f-]+$/i.test(member))) return false
    if (this.#filtering?.of === model) return this.#filtering.isServed
    const isServed = await this.#servesFilter(model)
    if (isServed !== undefined) this.#filtering = { of: model, isServed }
    return isServed ?? false
  }

  /** A server that ignores the filter answers with groups for a member that none has. Undefined if it has no groups. */
  async #servesFilter(model: ServiceModel): Promise<boolean | undefined> {
    const ofNoOne = await this.search.unchecked(havingMember(newId()), 1, 'members', model)
    if (ofNoOne.total > 0) return false
    return (await this.search.unchecked(undefined, 1, 'members', model)).total > 0 ? true : undefined
  }

  async #having(member: string, excluded?: 'members'): Promise<readonly Group[]> {
    const filter = havingMember(member)
    const model = await modelOf(this.#service)
    const { items, total } = await (excluded === undefined
      ? this.search.matching(filter, maxGroups, model)
      : this.search.unchecked(filter, maxGroups, excluded, model))
    if (total <= items.length) return items.map(({ entry }) => entry)
    throw new GatewayError(
      'TARGET_FAILED',
      `target "${this.#service.name}" has a member in more than ${maxGroups} groups`,
    )
  }

  /** Reads the names of member groups that the resource does not contain. A deleted group is left out. */
  async #withNames(group: ServerGroup): Promise<ServerGroup> {
    const { memberGroups = [] } = group.entry
    if (memberGroups.every(({ name }) => name !== '')) return group
    const named = await inParallel(memberGroups, width, async ({ id, name }) => {
      const found = name === '' ? (await this.byId(id, false))?.entry.name : name
      return found === undefined ? [] : [{ id, name: found }]
    })
    return { ...group, entry: { ...group.entry, memberGroups: named.flat() } }
  }
}

/** The group without its members. */
export function withoutMembers<G extends Group>({ memberGroups: _, memberDisplays: __, ...group }: G) {
  return { ...group, members: [] }
}

const asksForMembers = (filter: NonNullable<SearchQuery['filter']>): boolean => {
  if (filter.kind === 'and' || filter.kind === 'or') return filter.filters.some(asksForMembers)
  return filter.kind === 'not' ? asksForMembers(filter.filter) : filter.attribute.toLowerCase() === 'members'
}

function groupFilterName(attribute: string, { features, groups }: ServiceModel): FilterName {
  const own = (name: string, more: object): FilterName => {
    const path = features.groups.resolveAttribute(name, true)
    if (path === undefined) return { kind: 'unknown' }
    return { kind: 'path', path, leaf: path.sub ?? path.attribute, ...more }
  }
  switch (attribute.toLowerCase()) {
    case 'name':
    case 'displayname':
      return own('displayName', { always: true })
    case 'id':
      return own('id', { always: true, exact: true })
    case 'members':
      return own('members.value', { exact: true, neverEmpty: true })
    default:
      return timeName(attribute, features.groups) ?? slotName(attribute, groups)
  }
}
