import { inParallel } from '#kernel/in-parallel.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { ScimResource } from '#protocols/scim/schema/resource.ts'
import { isCore } from '#protocols/scim/schema/resource-schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import { fixedAttribute, groupFilterNames } from './filter-translation.ts'
import { type ListRequest, lookedUpPage, pagedSearch, type ResourcePage, requireSearchable } from './lists.ts'
import { type FoundGroup, type FoundUser, lookupWidth, type Member } from './lookups.ts'
import type { GatewayParts } from './run-workflow.ts'
import type { ScimCall } from './scim-call.ts'

/** With at most this many groups of one displayName, each is checked. */
const maxSharing = 500

type FilterMember =
  | { readonly id: string; readonly type: 'User'; readonly user: FoundUser }
  /** With the groups that contain it directly. */
  | { readonly id: string; readonly type: 'Group'; readonly parents: readonly string[] }

/**
 * Finds groups. To evaluate the filter, only the members that it names are looked up. All members are read only for the
 * groups on the page, and only if the client wants members.
 */
export class GroupSearch {
  readonly #parts: GatewayParts

  constructor(parts: GatewayParts) {
    this.#parts = parts
  }

  async page(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const page = await this.#matching(call, list)
    if (list.projection?.wants('members') === false) return page
    const resources = await inParallel(page.resources, lookupWidth, (resource) => this.#withMembers(call, resource))
    return { ...page, resources }
  }

  async #withMembers(call: ScimCall, resource: ScimResource): Promise<ScimResource> {
    const { lookups, groups } = this.#parts
    const found = await lookups.groupById(String(resource['id']), true)
    return found === undefined ? resource : groups.resource(found, call.base, await lookups.members(found, false))
  }

  /** The page without members, except those that the filter names. */
  async #matching(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const { lookups, groups, storage } = this.#parts
    const { filter } = list
    const searchable = await storage.searchable('groups')
    requireSearchable(list, searchable)
    const named = filter === undefined ? [] : await this.#filterMembers(filter)
    const toResource = async (found: FoundGroup): Promise<ScimResource> =>
      groups.resource(found, call.base, await this.#membersAmong(found, named))
    const candidates = filter === undefined ? undefined : await this.#candidates(filter, named)
    const nameOf = groupFilterNames(this.#parts, searchable)
    if (filter === undefined || candidates === undefined) {
      return pagedSearch({ search: (query) => lookups.searchGroups(query), toResource }, list, nameOf)
    }
    const resources = await inParallel(candidates, lookupWidth, toResource)
    // The filter may name the id in its older form.
    const id = fixedAttribute(filter, 'id')
    const asNamed = (resource: ScimResource): ScimResource =>
      id !== undefined && resource['id'] === lookups.ids.groupForm(id) ? { ...resource, id } : resource
    return lookedUpPage(resources, list, nameOf, (resource) => evaluateFilter(filter, asNamed(resource)))
  }

  /** The members that the filter names, as far as they exist. Throws invalidFilter if members are filtered otherwise. */
  async #filterMembers(filter: ScimFilter): Promise<readonly FilterMember[]> {
    const ids = new Set<string>()
    if (!collectMembers(filter, ids))
      throw scimError('invalidFilter', 'members can be filtered by eq only. Use members eq "id".')
    const { lookups } = this.#parts
    const found = await inParallel([...ids], lookupWidth, async (id): Promise<FilterMember | undefined> => {
      const type = lookups.ids.typeOf(id)
      const user = type === 'Group' ? undefined : await lookups.userById(id)
      if (user !== undefined) return { id: user.id, type: 'User', user }
      const group = type === 'User' || !lookups.nestsGroups ? undefined : await lookups.groupById(id, false)
      return group && { id: group.id, type: 'Group', parents: [] }
    })
    const members = found.filter((member) => member !== undefined)
    const groups = members.filter(({ type }) => type === 'Group')
    if (groups.length === 0) return members
    const containing = await lookups.containing(groups.map(({ id }) => id))
    return members.map((member) =>
      member.type === 'User'
        ? member
        : { ...member, parents: containing.get(member.id)?.flatMap(({ id, direct }) => (direct ? [id] : [])) ?? [] },
    )
  }

  async #membersAmong(found: FoundGroup, named: readonly FilterMember[]): Promise<readonly Member[]> {
    const { lookups } = this.#parts
    const members = await inParallel(named, lookupWidth, async (member): Promise<Member[]> => {
      const { id, type } = member
      const isMember =
        member.type === 'User' ? await lookups.isMember(found, member.user) : member.parents.includes(found.id)
      return isMember ? [{ id, type }] : []
    })
    return members.flat()
  }

  /** The few groups that can match if the filter fixes the id or a member; undefined if it does not. */
  async #candidates(filter: ScimFilter, named: readonly FilterMember[]): Promise<readonly FoundGroup[] | undefined> {
    const { lookups } = this.#parts
    const id = fixedAttribute(filter, 'id')
    if (id !== undefined) {
      const found = await lookups.groupById(id, false)
      return found === undefined ? [] : [found]
    }
    const memberId = fixedAttribute(filter, 'members', 'value')
    if (memberId === undefined) return this.#sharing(fixedAttribute(filter, 'displayName'))
    const member = named.find(({ id }) => id === memberId)
    if (member === undefined) return []
    if (member.type === 'User') return lookups.groupsOf(member.user)
    const parents = await inParallel(member.parents, lookupWidth, (id) => lookups.groupById(id, false))
    return parents.filter((group) => group !== undefined)
  }

  /** If groups share names, a name that the gateway made differs from the displayName, so each candidate is checked. */
  async #sharing(name: string | undefined): Promise<readonly FoundGroup[] | undefined> {
    const { config, lookups } = this.#parts
    const attribute = config.groups.displayAttribute
    if (name === undefined || attribute === undefined || !config.groups.sharesNames) return undefined
    const filter = { kind: 'equal', attribute, value: name } as const
    const { items, total } = await lookups.searchGroups({ filter, offset: 0, limit: maxSharing })
    if (total > maxSharing) return undefined
    const byName = await lookups.groupByName(name)
    return byName === undefined || items.some(({ id }) => id === byName.id) ? items : [...items, byName]
  }
}

/**
 * Collects the ids that a filter on groups compares `members` with: their membership alone decides whether a group
 * matches, however many members it has. Returns false if the filter uses members in another way.
 */
function collectMembers(filter: ScimFilter, ids: Set<string>): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.every((part) => collectMembers(part, ids))
    case 'not':
      return collectMembers(filter.filter, ids)
    case 'element':
      return !isCore(filter.of, 'members') || fixesValue(filter.filter, 'value', undefined, ids)
    default:
      return !isCore(filter.path, 'members') || fixesValue(filter, 'members', 'value', ids)
  }
}

/** Whether only elements with a value that the filter names can match it. */
function fixesValue(filter: ScimFilter, name: string, sub: string | undefined, ids: Set<string>): boolean {
  if (filter.kind === 'and') return filter.filters.some((part) => fixesValue(part, name, sub, ids))
  if (filter.kind === 'or') return filter.filters.every((part) => fixesValue(part, name, sub, ids))
  if (filter.kind !== 'compare' || filter.operator !== 'eq' || typeof filter.value !== 'string') return false
  if (filter.path.attribute.name !== name || filter.path.sub?.name !== sub) return false
  ids.add(filter.value)
  return true
}
