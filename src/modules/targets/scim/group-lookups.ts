import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { groupCollection } from '#modules/shared/targets/collections.ts'
import type { SearchQuery } from '#sdk/target.ts'
import type { FilterName } from './filter-to-scim.ts'
import { resourceAt } from './resource-address.ts'
import { ResourceSearch, type Searched, theOne } from './resource-search.ts'
import { modelOf, type ScimService, type ServiceModel } from './service-model.ts'
import { slotName, timeName } from './slot-name.ts'
import { readGroup, type StoredGroup } from './stored-resource.ts'

const maxGroups = 1000
const width = 8

/** Finds groups; with their members only where these are asked for, since they may be many. */
export class GroupLookups {
  readonly #service: ScimService
  readonly search: ResourceSearch<Group>

  constructor(service: ScimService) {
    this.#service = service
    const searched: Searched<Group> = {
      endpoint: '/Groups',
      // Groups are members under their ids, as users are.
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
      excluded: ({ filter }) => (filter !== undefined && asksForMembers(filter) ? undefined : 'members'),
      complete: async (found) => found,
    }
    this.search = new ResourceSearch(service, searched)
  }

  async byName(name: string, members: boolean): Promise<StoredGroup | undefined> {
    if (name === '') return undefined
    const found = await this.search.having('name', name, await modelOf(this.#service))
    const one = theOne(found, ({ entry }) => entry.name === name, 'groups')
    return one === undefined || !members ? one : this.byId(one.entry.id, true)
  }

  async byId(id: string, members: boolean): Promise<StoredGroup | undefined> {
    const model = await modelOf(this.#service)
    const raw = await resourceAt(this.#service, '/Groups', id, members ? {} : { excludedAttributes: 'members' })
    if (raw === undefined) return undefined
    const group = readGroup(raw, model, this.#service)
    if (group.entry.id !== id) {
      throw new GatewayError('TARGET_FAILED', `target "${this.#service.name}" gave another group`)
    }
    return members ? this.#withNames(group) : { ...group, entry: withoutMembers(group.entry) }
  }

  /** The groups that a user is a member of. */
  async of(userId: string): Promise<readonly Group[]> {
    const found = await this.#having(userId)
    return found.filter(({ members }) => members.includes(userId))
  }

  /** The groups that a group is a direct member of. */
  async holding(groupId: string): Promise<readonly Group[]> {
    const found = await this.#having(groupId)
    return found.filter(({ memberGroups = [] }) => memberGroups.some(({ id }) => id === groupId))
  }

  async #having(member: string): Promise<readonly Group[]> {
    const filter = { kind: 'equal', attribute: 'members', value: member } as const
    const { items, total } = await this.search.matching(filter, maxGroups, await modelOf(this.#service))
    if (total <= items.length) return items.map(({ entry }) => entry)
    throw new GatewayError(
      'TARGET_FAILED',
      `target "${this.#service.name}" has a member in more than ${maxGroups} groups`,
    )
  }

  /** Names of member groups that the resource does not tell are read from these. One that is gone is no member. */
  async #withNames(group: StoredGroup): Promise<StoredGroup> {
    const { memberGroups = [] } = group.entry
    if (memberGroups.every(({ name }) => name !== '')) return group
    const named = await inParallel(memberGroups, width, async ({ id, name }) => {
      const found = name === '' ? (await this.byId(id, false))?.entry.name : name
      return found === undefined ? [] : [{ id, name: found }]
    })
    return { ...group, entry: { ...group.entry, memberGroups: named.flat() } }
  }
}

/** A group as it is shown where its members were not asked for. */
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
