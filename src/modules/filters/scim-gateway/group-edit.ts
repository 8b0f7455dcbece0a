import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type PatchOperation, parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import { readAttribute, type ScimResource } from '#protocols/scim/resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { type AttributePath, internalName, isCore, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { refuseUnknown } from './unstored-change.ts'

/** Members in one request; the body's size bounds them first. */
const maxMembers = 100_000

const isMembers = (path: AttributePath): boolean => isCore(path, 'members')

const readOptions = ({ client, groups, ignored }: GatewayConfig, kind: GroupEdit['kind']): ReadOptions => ({
  readOnly: 'drop',
  maxValues: maxMembers,
  strict: client.strict,
  unknown: refuseUnknown(groups.schema, kind, ignored),
  refuseEmpty: true,
})

/** What a request wants of a group, understood; nothing has been looked up yet. */
export interface GroupEdit {
  readonly kind: 'create' | 'patch' | 'put'
  /** On the group itself: its name and attributes. */
  readonly own: readonly PatchOperation[]
  readonly members: readonly PatchOperation[]
}

/** Throws what parsePatch throws, and mutability for a `remove` of all members where the client must not. */
export function readPatch(config: GatewayConfig, body: JsonValue): GroupEdit {
  const { groups, client } = config
  const operations = parsePatch(groups.schema, body, readOptions(config, 'patch'))
  if (client.removeAllMembers === 'refuse' && removesAll(groups.schema, body)) {
    throw scimError('mutability', 'members: this client cannot remove all members at once. Name the members to remove.')
  }
  return editOf('patch', operations)
}

/**
 * `remove` of `members` that names none. It is read from the message itself, since a `replace` with an empty list means
 * the same once it is understood, and says so on purpose.
 */
function removesAll(schema: ResourceSchema, body: JsonValue): boolean {
  return operationsOf(body).some((operation) => {
    const { op, path, value } = lowerCased(operation)
    if (typeof op !== 'string' || op.toLowerCase() !== 'remove' || typeof path !== 'string') return false
    const target = schema.resolveAttribute(path.trim())
    return target !== undefined && isMembers(target) && target.sub === undefined && (value ?? null) === null
  })
}

function operationsOf(body: JsonValue): readonly JsonObject[] {
  const list = isJsonObject(body) ? lowerCased(body)['operations'] : undefined
  return Array.isArray(list) ? list.filter(isJsonObject) : []
}

const lowerCased = (object: JsonObject): Partial<Record<string, JsonValue>> =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value]))

/** The group as a client sent it. Throws invalidSyntax or invalidValue. */
export function readGroup(config: GatewayConfig, body: JsonValue, kind: 'create' | 'put'): ScimResource {
  const { schema } = config.groups
  const resource = readResource(schema, body, readOptions(config, kind))
  requireAttributes(schema, resource)
  return resource
}

/** What is left out is cleared; but where groups cannot be changed, it stays, as what cannot be changed does. */
export function putEdit({ groups, workflows }: GatewayConfig, sent: JsonObject): GroupEdit {
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

/** A new group: its members are added to none. */
export function createEdit({ groups }: GatewayConfig, sent: JsonObject): GroupEdit {
  const operations = Array.from(groups.schema.attributes()).flatMap((target): PatchOperation[] => {
    const value = readAttribute(sent, target)
    return value === undefined ? [] : [{ op: 'add', target, value }]
  })
  return editOf('create', operations)
}

function editOf(kind: GroupEdit['kind'], operations: readonly PatchOperation[]): GroupEdit {
  const onMembers = ({ target }: PatchOperation): boolean => isMembers(target)
  return { kind, own: operations.filter((one) => !onMembers(one)), members: operations.filter(onMembers) }
}

/** The edit for the journal: what was done to which attribute, how many members, and no value. */
export function describeEdit({ own, members }: GroupEdit): JsonValue {
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
