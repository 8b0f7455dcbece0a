import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { type PatchOperation, parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { type AttributePath, internalName, isCore, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { fixedAttribute, groupFilterNames, type NameOf } from './filter-translation.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { findGroup, GroupChanges, type GroupEdit } from './group-changes.ts'
import { type ListRequest, listAnswer, pagedSearch, pageOf, parseListRequest, type ResourcePage } from './lists.ts'
import { type FoundGroup, type FoundUser, lookupWidth, type Member } from './lookups.ts'
import type { GatewayParts } from './run-workflow.ts'
import {
  etagHeader,
  noContent,
  notModified,
  notSupported,
  projectionOf,
  resourceAnswer,
  type ScimCall,
} from './scim-call.ts'
import { refuseUnknown } from './storable-change.ts'

/** Members in one request; the size of the body limits them first. */
const maxMembers = 100_000

/** `/Groups` and `/Groups/{id}`. */
export class GroupEndpoint {
  readonly #parts: GatewayParts
  readonly #search: GroupSearch
  readonly #changes: GroupChanges

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#search = new GroupSearch(parts)
    this.#changes = new GroupChanges(parts)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    const { lookups } = this.#parts
    if (call.ifNoneMatch !== undefined) {
      const { group } = await findGroup(lookups, call.id, false)
      const unchanged = notModified(call, group.version)
      if (unchanged !== undefined) return unchanged
    }
    return this.#show(call, 200, await findGroup(lookups, call.id, this.#wantsMembers(call)))
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const { groups, client } = this.#parts.config
    const list = parseListRequest(call, groups.schema, client)
    return listAnswer(call, list, await this.search(call, list))
  }

  search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    return this.#search.page(call, list)
  }

  async create(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    if (config.workflows.createGroup === undefined)
      throw notSupported('Groups cannot be created: this gateway has no groupCreateWorkflow.')
    const sent = readGroup(config, await call.body(), 'create')
    const edit = createEdit(config, sent)
    call.notes.operations = describeEdit(edit)
    return this.#show(call, 201, await this.#changes.create(call, sent, edit, this.#wantsMembers(call)))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    const edit = patchEdit(config, await call.body())
    call.notes.operations = describeEdit(edit)
    const isShown = config.client.groupPatch === 'resource' || call.query.has('attributes')
    const changed = await this.#changes.change(call, edit, isShown && this.#wantsMembers(call))
    return isShown ? this.#show(call, 200, changed) : { ...noContent, headers: etagHeader(changed.group.version) }
  }

  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    const edit = putEdit(config, readGroup(config, await call.body(), 'put'))
    call.notes.operations = describeEdit(edit)
    return this.#show(call, 200, await this.#changes.change(call, edit, this.#wantsMembers(call)))
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    await this.#changes.delete(call)
    return noContent
  }

  #wantsMembers(call: ScimCall): boolean {
    return projectionOf(call, this.#parts.config.groups.schema)?.wants('members') ?? true
  }

  async #show(call: ScimCall, status: 200 | 201, found: FoundGroup): Promise<GatewayResponse> {
    const resource = await this.#parts.groups.resource(found, call.base, this.#wantsMembers(call))
    const projection = projectionOf(call, this.#parts.config.groups.schema)
    return resourceAnswer(call, status, resource, found.group.version, projection)
  }
}

function readGroup(config: GatewayConfig, body: JsonValue, kind: 'create' | 'put'): ScimResource {
  const { schema } = config.groups
  const resource = readResource(schema, body, readOptions(config, kind))
  requireAttributes(schema, resource)
  return resource
}

const readOptions = ({ client, groups, ignored }: GatewayConfig, kind: GroupEdit['kind']): ReadOptions => ({
  readOnly: 'drop',
  maxValues: maxMembers,
  strict: client.strict,
  unknown: refuseUnknown(groups.schema, kind, ignored),
  refuseEmpty: true,
})

/** Adds the members to a new group. */
function createEdit({ groups }: GatewayConfig, sent: JsonObject): GroupEdit {
  const operations = Array.from(groups.schema.attributes()).flatMap((target): PatchOperation[] => {
    const value = readAttribute(sent, target)
    return value === undefined ? [] : [{ op: 'add', target, value }]
  })
  return editOf('create', operations)
}

/** Attributes that the client leaves out are cleared, unless groups cannot be changed here. */
function putEdit({ groups, workflows }: GatewayConfig, sent: JsonObject): GroupEdit {
  const operations = Array.from(groups.schema.attributes()).flatMap((target): PatchOperation[] => {
    const { mutability, required, type } = target.attribute
    const value = readAttribute(sent, target)
    if (mutability === 'readOnly') return []
    const stays = required || (workflows.updateGroup === undefined && !isMembers(target))
    const whole = value === undefined || (type === 'complex' && !isMembers(target))
    return [
      ...(whole && !stays ? [{ op: 'remove', target } as const] : []),
      ...(value === undefined ? [] : [{ op: 'replace', target, value } as const]),
    ]
  })
  return editOf('put', operations)
}

/** Throws what parsePatch throws, and mutability for a `remove` of all members if the client's profile refuses it. */
function patchEdit(config: GatewayConfig, body: JsonValue): GroupEdit {
  const { groups, client } = config
  const operations = parsePatch(groups.schema, body, readOptions(config, 'patch'))
  if (client.removeAllMembers === 'refuse' && removesAllMembers(groups.schema, body)) {
    throw scimError('mutability', 'members: this client cannot remove all members at once. Name the members to remove.')
  }
  return editOf('patch', operations)
}

/**
 * Whether there is a `remove` of `members` without values. Read from the message itself, because a parsed `replace` with
 * an empty list looks the same, and that one is deliberate.
 */
function removesAllMembers(schema: ResourceSchema, body: JsonValue): boolean {
  const list = isJsonObject(body) ? lowerCased(body)['operations'] : undefined
  const operations: readonly JsonValue[] = Array.isArray(list) ? list : []
  return operations.filter(isJsonObject).some((operation) => {
    const { op, path, value } = lowerCased(operation)
    if (typeof op !== 'string' || op.toLowerCase() !== 'remove' || typeof path !== 'string') return false
    const target = schema.resolveAttribute(path.trim())
    return target !== undefined && isMembers(target) && target.sub === undefined && (value ?? null) === null
  })
}

const lowerCased = (object: JsonObject): Partial<Record<string, JsonValue>> =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value]))

const isMembers = (path: AttributePath): boolean => isCore(path, 'members')

function editOf(kind: GroupEdit['kind'], operations: readonly PatchOperation[]): GroupEdit {
  const onMembers = ({ target }: PatchOperation): boolean => isMembers(target)
  return { kind, own: operations.filter((one) => !onMembers(one)), members: operations.filter(onMembers) }
}

/** The edit for the journal: operations, attributes and the number of members, without values. */
function describeEdit({ own, members }: GroupEdit): JsonValue {
  const described: { op: string; path: string; count?: number }[] = own.map(({ op, target }) => ({
    op,
    path: internalName(target),
  }))
  for (const operation of members) {
    const { op } = operation
    const values = op === 'remove' ? operation.values : operation.value
    const count = Array.isArray(values) ? values.length : operation.target.filter === undefined ? 0 : 1
    const last = described.at(-1)
    if (last?.op === op && last.path === 'members') last.count = (last.count ?? 0) + count
    else described.push({ op, path: 'members', count })
  }
  return described
}

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
class GroupSearch {
  readonly #parts: GatewayParts
  readonly #nameOf: NameOf

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#nameOf = groupFilterNames(parts)
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
    const { lookups, groups } = this.#parts
    const { filter } = list
    const named = filter === undefined ? [] : await this.#filterMembers(filter)
    const toResource = async (found: FoundGroup): Promise<ScimResource> =>
      groups.resource(found, call.base, await this.#membersAmong(found, named))
    const candidates = filter === undefined ? undefined : await this.#candidates(filter, named)
    if (filter === undefined || candidates === undefined) {
      return pagedSearch({ search: (query) => lookups.searchGroups(query), toResource }, list, this.#nameOf)
    }
    const resources = await inParallel(candidates, lookupWidth, toResource)
    // The filter may name the id in its older form.
    const id = fixedAttribute(filter, 'id')
    return pageOf(
      resources.filter((resource) => evaluateFilter(filter, id === undefined ? resource : { ...resource, id })),
      list,
    )
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
