import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type PatchOperation, parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { type AttributePath, internalName, isCore, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { findGroup, GroupChanges, type GroupEdit } from './group-changes.ts'
import { GroupSearch } from './group-search.ts'
import { type ListRequest, listAnswer, parseListRequest, type ResourcePage } from './lists.ts'
import type { FoundGroup } from './lookups.ts'
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

/** Throws invalidSyntax or invalidValue. */
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
