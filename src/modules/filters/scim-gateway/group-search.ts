import { inParallel } from '#kernel/in-parallel.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { isCore, pathKey } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { heldTime, type NameOf } from './filter-translation.ts'
import { fixedAttribute } from './fixed-attribute.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { ListRequest, ResourcePage } from './list-request.ts'
import { type FoundGroup, type FoundUser, lookupWidth, type Member } from './lookups.ts'
import { namedMembers } from './named-members.ts'
import { pagedSearch, pageOf } from './paged-search.ts'
import type { ScimCall } from './scim-call.ts'

/**
 * Finds groups. Of members, only those that the filter asks about are looked at; all of them are read only for the groups
 * that are shown, and only where members are wanted.
 */
export class GroupSearch {
  readonly #parts: GatewayParts
  readonly #nameOf: NameOf

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#nameOf = groupFilterNames(parts)
  }

  async page(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    if (list.sort !== undefined && isCore(list.sort.path, 'members')) {
      throw scimError('invalidValue', 'sortBy: groups cannot be sorted by members. Sort by another attribute.')
    }
    const found = await this.#matching(call, list)
    if (list.projection?.wants('members') === false) return found
    const resources = await inParallel(found.resources, lookupWidth, (lean) => this.#whole(call, lean))
    return { ...found, resources }
  }

  /** The page without members, except those that the filter asks about. */
  async #matching(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const { lookups, groupView } = this.#parts
    const { filter } = list
    const asked = filter === undefined ? [] : await this.#asked(filter)
    const toResource = async (found: FoundGroup): Promise<ScimResource> =>
      groupView.resource(found, call.base, await this.#membersAmong(found, asked))
    const candidates = filter === undefined ? undefined : await this.#candidates(filter, asked)
    if (filter === undefined || candidates === undefined) {
      return pagedSearch({ search: (query) => lookups.searchGroups(query), toResource }, list, this.#nameOf)
    }
    const resources = await inParallel(candidates, lookupWidth, toResource)
    // The id may be given in a form that was shown in the past.
    const id = fixedAttribute(filter, 'id')
    return pageOf(
      resources.filter((resource) => evaluateFilter(filter, id === undefined ? resource : { ...resource, id })),
      list,
    )
  }

  /** The members that the filter asks about, as far as they exist. Throws invalidFilter when it cannot be served. */
  async #asked(filter: ScimFilter): Promise<readonly AskedMember[]> {
    const ids = namedMembers(filter)
    if (ids === undefined) throw scimError('invalidFilter', 'members can be filtered by eq only. Use members eq "id".')
    const { lookups } = this.#parts
    const found = await inParallel([...ids], lookupWidth, async (id): Promise<AskedMember | undefined> => {
      const type = lookups.ids.typeOf(id)
      const user = type === 'Group' ? undefined : await lookups.userById(id)
      if (user !== undefined) return { id: user.id, type: 'User', user }
      const group = type === 'User' || !lookups.nestsGroups ? undefined : await lookups.groupById(id, false)
      return group && { id: group.id, type: 'Group', parents: [] }
    })
    const asked = found.filter((member) => member !== undefined)
    const groups = asked.filter(({ type }) => type === 'Group')
    if (groups.length === 0) return asked
    const containing = await lookups.containing(groups.map(({ id }) => id))
    return asked.map((member) =>
      member.type === 'User'
        ? member
        : { ...member, parents: containing.get(member.id)?.flatMap(({ id, direct }) => (direct ? [id] : [])) ?? [] },
    )
  }

  async #membersAmong(found: FoundGroup, asked: readonly AskedMember[]): Promise<readonly Member[]> {
    const { lookups } = this.#parts
    const members = await inParallel(asked, lookupWidth, async (member): Promise<Member[]> => {
      const { id, type } = member
      const isMember =
        member.type === 'User' ? await lookups.isMember(found, member.user) : member.parents.includes(found.id)
      return isMember ? [{ id, type }] : []
    })
    return members.flat()
  }

  /** The few groups that can match where the filter fixes the id or a member. */
  async #candidates(filter: ScimFilter, asked: readonly AskedMember[]): Promise<readonly FoundGroup[] | undefined> {
    const { lookups } = this.#parts
    const id = fixedAttribute(filter, 'id')
    if (id !== undefined) {
      const found = await lookups.groupById(id, false)
      return found === undefined ? [] : [found]
    }
    const member = fixedAttribute(filter, 'members', 'value')
    if (member === undefined) return this.#sharing(fixedAttribute(filter, 'displayName'))
    const known = asked.find(({ id }) => id === member)
    if (known === undefined) return []
    if (known.type === 'User') return lookups.groupsOf(known.user)
    const parents = await inParallel(known.parents, lookupWidth, (id) => lookups.groupById(id, false))
    return parents.filter((group) => group !== undefined)
  }

  /** Where names are shared, a name that the gateway made is not the displayName, so each candidate is looked at. */
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

  async #whole(call: ScimCall, lean: ScimResource): Promise<ScimResource> {
    const { lookups, groupView } = this.#parts
    const found = await lookups.groupById(String(lean['id']), true)
    return found === undefined ? lean : groupView.resource(found, call.base, await lookups.members(found, false))
  }
}

/** Groups of one displayName that are looked at one by one. */
const maxSharing = 500

type AskedMember =
  | { readonly id: string; readonly type: 'User'; readonly user: FoundUser }
  /** With the groups that contain it directly. */
  | { readonly id: string; readonly type: 'Group'; readonly parents: readonly string[] }

/** An attribute that groups here do not have never has a value. */
function groupFilterNames({ config, lookups }: GatewayParts): NameOf {
  return (path) => {
    const internal = config.groups.filterNames.get(pathKey(path))
    if (isCore(path, 'id')) return lookups.ids.areMarked ? undefined : lookups.names.groupId
    if (isCore(path, 'displayName')) return internal === undefined ? lookups.names.groupName : [internal]
    if (internal !== undefined) return [internal]
    const held = config.groups.mapping.held(path) ?? heldTime(path, lookups.servedTimes.groups)
    if (held !== undefined) return held
    return ['meta', 'schemas', 'members'].some((name) => isCore(path, name)) ? undefined : []
  }
}
