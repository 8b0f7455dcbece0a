import { inParallel } from '#kernel/in-parallel.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { pathKey } from '#protocols/scim/path-key.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { isCore } from './core-attribute.ts'
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
    return pageOf(
      resources.filter((resource) => evaluateFilter(filter, resource)),
      list,
    )
  }

  /** The users that the filter asks about, as far as they exist. Throws invalidFilter when it cannot be served. */
  async #asked(filter: ScimFilter): Promise<readonly FoundUser[]> {
    const ids = namedMembers(filter)
    if (ids === undefined) throw scimError('invalidFilter', 'members can be filtered by eq only. Use members eq "id".')
    const { lookups } = this.#parts
    return (await inParallel([...ids], lookupWidth, (id) => lookups.userById(id))).filter((user) => user !== undefined)
  }

  async #membersAmong(found: FoundGroup, users: readonly FoundUser[]): Promise<readonly Member[]> {
    const { lookups } = this.#parts
    const members = await inParallel(
      users,
      lookupWidth,
      async (user): Promise<Member[]> => ((await lookups.isMember(found, user)) ? [{ id: user.id }] : []),
    )
    return members.flat()
  }

  /** The few groups that can match where the filter fixes the id or a member. */
  async #candidates(filter: ScimFilter, asked: readonly FoundUser[]): Promise<readonly FoundGroup[] | undefined> {
    const { lookups } = this.#parts
    const id = fixedAttribute(filter, 'id')
    if (id !== undefined) {
      const found = await lookups.groupById(id, false)
      return found === undefined ? [] : [found]
    }
    const member = fixedAttribute(filter, 'members', 'value')
    if (member === undefined) return undefined
    const user = asked.find(({ id }) => id === member)
    return user === undefined ? [] : lookups.groupsOf(user)
  }

  async #whole(call: ScimCall, lean: ScimResource): Promise<ScimResource> {
    const { lookups, groupView } = this.#parts
    const found = await lookups.groupById(String(lean['id']), true)
    return found === undefined ? lean : groupView.resource(found, call.base, true)
  }
}

/** An attribute that groups here do not have never has a value. */
function groupFilterNames({ config, lookups }: GatewayParts): NameOf {
  return (path) => {
    const internal = config.groups.filterNames.get(pathKey(path))
    if (isCore(path, 'id')) return lookups.names.groupId
    if (isCore(path, 'displayName')) return internal === undefined ? lookups.names.groupName : [internal]
    if (internal !== undefined) return [internal]
    const held = config.groups.mapping.held(path) ?? heldTime(path, lookups.servedTimes.groups)
    if (held !== undefined) return held
    return ['meta', 'schemas', 'members'].some((name) => isCore(path, name)) ? undefined : []
  }
}
