import { hasCode } from '#adapters/targets/shared/user-reconciler.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { member } from '#protocols/scim/message.ts'
import type { ScimResource } from '#protocols/scim/schema/resource.ts'
import type { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { internalName } from '#protocols/scim/schema/resource-schema.ts'
import type { StorableAttributes, TargetRequest } from '#sdk/target/target.ts'
import type { ScimProfile } from './profiles.ts'
import { applyEdits, type Edit, ResourceMapping } from './resource-mapping.ts'
import type { ScimConnection, ScimRequest } from './scim-connection.ts'
import type { ServiceDiscovery, ServiceFeatures } from './service-discovery.ts'

/** The server behind a target. */
export interface ScimService {
  readonly name: string
  readonly connection: ScimConnection
  readonly discovery: ServiceDiscovery
  readonly log: Logger
  /** Where a user's groups are read. */
  readonly memberships: 'user' | 'group'
  readonly profile: ScimProfile
}

/** The server's capabilities, and the mapping of its resources to attributes. */
export interface ServiceModel {
  readonly features: ServiceFeatures
  readonly users: ResourceMapping
  readonly groups: ResourceMapping
  readonly storable: StorableAttributes
}

const ownOfUsers = new Set(['schemas', 'id', 'meta', 'userName', 'password', 'groups'])
const ownOfGroups = new Set(['schemas', 'id', 'meta', 'displayName', 'members'])

const models = new WeakMap<ServiceFeatures, ServiceModel>()

/** Throws TARGET_UNREACHABLE while the server has not answered yet. */
export async function modelOf({ discovery, profile }: ScimService): Promise<ServiceModel> {
  const features = await discovery.features()
  const known = models.get(features)
  if (known !== undefined) return known
  const typed = profile.users.typedEmails === true ? 'emails' : undefined
  const users = new ResourceMapping(features.users, ownOfUsers, ['username', 'userid'], typed)
  const groups = new ResourceMapping(features.groups, ownOfGroups, ['displayname', 'name'])
  const model = { features, users, groups, storable: { users: writtenBy(users), groups: writtenBy(groups) } }
  models.set(features, model)
  return model
}

const writtenBy = ({ slots }: ResourceMapping): ReadonlySet<string> =>
  new Set(slots.written.map(({ name }) => name.toLowerCase()))

/** A user or group with the resource that it was read from. */
export interface Stored<T> {
  readonly entry: T & { readonly id: string }
  /** As the server sent it. */
  readonly raw: JsonObject
  /** As the schema spells it. */
  readonly resource: ScimResource
}

export type ServerUser = Stored<User>
export type ServerGroup = Stored<Group>

/** Throws TARGET_FAILED for a resource that isn't a user. Groups are those of the resource. */
export function readUser(raw: JsonObject, model: ServiceModel, service: ScimService): ServerUser {
  const id = requiredText(raw, 'id', service)
  const userID = requiredText(raw, 'userName', service)
  const external = service.profile.users.idIsExternal === true ? { externalId: id } : {}
  const resource = model.users.normalize({ ...external, ...raw }, reporting(service, id))
  const all = elements(raw, 'groups')
  const typeOf = (group: JsonObject) => textOf(group, 'type')?.toLowerCase()
  const groups = all.filter((group) => typeOf(group) !== 'indirect')
  // A server that reports how the user is in each group would also list the indirect ones.
  const areAllDirect = all.length > 0 && all.every((group) => typeOf(group) === 'direct')
  const named = groups.flatMap((group) => {
    const value = textOf(group, 'value')
    return value === undefined ? [] : [{ id: value, name: textOf(group, 'display') ?? '' }]
  })
  const attributes = model.users.attributes(resource)
  attributes.set('userName', [userID])
  const entry = {
    id,
    userID,
    attributes,
    groups: named.map(({ name }) => name),
    groupIds: named.map((group) => group.id),
    ...(areAllDirect && service.memberships === 'user' ? { groupsAreNested: false } : {}),
    ...metaOf(raw, model),
  }
  return { entry, raw, resource }
}

/** Throws TARGET_FAILED for a resource that isn't a group. Member groups without a display name have an empty name. */
export function readGroup(raw: JsonObject, model: ServiceModel, service: ScimService): ServerGroup {
  const id = requiredText(raw, 'id', service)
  const name = requiredText(raw, 'displayName', service)
  const resource = model.groups.normalize(raw, reporting(service, id))
  const attributes = model.groups.attributes(resource)
  const description = attributes.first('description')
  attributes.set('displayName', [name])
  const held = elements(raw, 'members').filter((one) => textOf(one, 'value') !== undefined)
  const users = held.filter((one) => !isGroupMember(one))
  const memberGroups = held.filter(isGroupMember).map((one) => ({
    id: textOf(one, 'value') ?? '',
    name: textOf(one, 'display') ?? '',
  }))
  const entry = {
    id,
    name,
    members: users.flatMap((one) => textOf(one, 'value') ?? []),
    memberDisplays: users.map((one) => textOf(one, 'display')),
    memberGroups,
    attributes,
    ...(description === undefined ? {} : { description }),
    ...metaOf(raw, model),
  }
  return { entry, raw, resource }
}

/** By its type, otherwise by its address; a member with neither is a user. */
export function isGroupMember(element: JsonObject): boolean {
  const type = textOf(element, 'type')
  if (type !== undefined && type !== '') return type.toLowerCase() === 'group'
  return /\/Groups\/[^/]+$/i.test(textOf(element, '$ref') ?? '')
}

const maxId = 2000

function requiredText(raw: JsonObject, name: string, service: ScimService): string {
  const text = textOf(raw, name)
  if (text !== undefined && text !== '' && (name !== 'id' || text.length <= maxId)) return text
  throw new GatewayError('TARGET_FAILED', `target "${service.name}" answered a resource without ${name}`)
}

const reporting =
  ({ log }: ScimService, id: string) =>
  (attribute: string, error: unknown): void =>
    log.warn('a value of the SCIM server is not of its type', { id, attribute, err: error })

function metaOf(raw: JsonObject, { features }: ServiceModel) {
  const meta = member(raw, 'meta')
  if (!isJsonObject(meta)) return {}
  const version = features.etag ? textOf(meta, 'version') : undefined
  const created = dateOf(textOf(meta, 'created'))
  const modified = dateOf(textOf(meta, 'lastModified'))
  return {
    ...(version === undefined || !/^[\x20-\x7e]{1,1000}$/.test(version) ? {} : { version }),
    ...(created === undefined ? {} : { created }),
    ...(modified === undefined ? {} : { modified }),
  }
}

function dateOf(text: string | undefined): Date | undefined {
  const date = new Date(text ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? undefined : date
}

function elements(raw: JsonObject, name: string): readonly JsonObject[] {
  const list: JsonValue | undefined = member(raw, name)
  return Array.isArray(list) ? list.filter(isJsonObject) : []
}

function textOf(object: JsonObject, name: string): string | undefined {
  const value = member(object, name)
  return typeof value === 'string' ? value : undefined
}

type Endpoint = '/Users' | '/Groups'

/** Path segments with another meaning than an id. */
const special: ReadonlySet<string> = new Set(['', '.', '..', '.search'])

/** The path of a resource; undefined for an invalid id. */
function resourcePath(endpoint: Endpoint, id: string): string | undefined {
  if (special.has(id.toLowerCase()) || !id.isWellFormed() || id.includes('\0') || id.length > 2000) return undefined
  return `${endpoint}/${encodeURIComponent(id)}`
}

/** Undefined when it doesn't exist. */
export async function resourceAt(
  { connection }: ScimService,
  endpoint: Endpoint,
  id: string,
  query: Readonly<Record<string, string>> = {},
): Promise<JsonObject | undefined> {
  const path = resourcePath(endpoint, id)
  if (path === undefined) return undefined
  try {
    return (await connection.call({ method: 'GET', path, query })).body
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'NOT_FOUND') return undefined
    throw error
  }
}

/** The path of a resource that the server itself named. */
export function requiredPath({ name }: ScimService, endpoint: Endpoint, id: string): string {
  const path = resourcePath(endpoint, id)
  if (path === undefined) throw new GatewayError('TARGET_FAILED', `target "${name}" gave an id that is none`)
  return path
}

export const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

/** The name of a resource: `userName` or `displayName`. */
interface Naming {
  readonly attribute: 'userName' | 'displayName'
  /** Undefined keeps it. */
  readonly value: string | undefined
}

/** The body of a resource that does not exist yet. */
export function newResource(schema: ResourceSchema, naming: Naming, edits: readonly Edit[]): ScimResource {
  const resource = applyEdits({ [naming.attribute]: naming.value ?? '' }, edits)
  const extensions = schema.extensions.filter(({ id }) => resource[id] !== undefined).map(({ id }) => id)
  return { schemas: [schema.core.id, ...extensions], ...resource }
}

/**
 * The request for the edits: a PATCH of only these, or the whole resource if the server has no PATCH. It is bound to
 * the version that was read, if the server has versions.
 */
export function changeRequest(
  stored: Stored<{ readonly version?: string | undefined }>,
  naming: Naming,
  edits: readonly Edit[],
  { path, model, schema }: { readonly path: string; readonly model: ServiceModel; readonly schema: ResourceSchema },
): ScimRequest {
  const { version: ifMatch } = stored.entry
  if (!model.features.patch) {
    return { method: 'PUT', path, ifMatch, body: replaced(stored.raw, naming, edits, schema) }
  }
  const Operations: JsonValue[] = [
    ...(naming.value === undefined ? [] : [{ op: 'replace', path: naming.attribute, value: naming.value }]),
    ...edits.map((edit) => operation(edit)),
  ]
  return { method: 'PATCH', path, ifMatch, body: { schemas: [patchSchema], Operations } }
}

function operation({ path, value, isNew }: Edit): JsonObject {
  const name = internalName(path)
  return value === undefined ? { op: 'remove', path: name } : { op: isNew ? 'add' : 'replace', path: name, value }
}

/** Unknown attributes stay unchanged; those that the server sets itself are left out. */
function replaced(raw: JsonObject, naming: Naming, edits: readonly Edit[], schema: ResourceSchema): ScimResource {
  const resource: ScimResource = {}
  for (const [name, value] of Object.entries(raw)) {
    const resolved = schema.resolve(name, true)
    if (resolved?.kind === 'attribute' && resolved.attribute.mutability === 'readOnly') continue
    const spelled = resolved?.kind === 'attribute' ? resolved.attribute.name : (resolved?.extension ?? name)
    resource[spelled] = isJsonObject(value) && resolved?.kind === 'schema' ? { ...value } : value
  }
  if (naming.value !== undefined) resource[naming.attribute] = naming.value
  return { ...applyEdits(resource, edits), schemas: schemasOf(raw, resource, schema), id: raw['id'] ?? null }
}

function schemasOf(raw: JsonObject, resource: ScimResource, schema: ResourceSchema): string[] {
  const present = Array.isArray(raw['schemas']) ? raw['schemas'].filter((uri) => typeof uri === 'string') : []
  const held = schema.extensions.filter(({ id }) => resource[id] !== undefined).map(({ id }) => id)
  return [...new Set([schema.core.id, ...present, ...held])]
}

/** Sends a change, and returns the resource if the server answers with it. */
export async function send(
  { connection }: ScimService,
  request: ScimRequest,
  { signal }: Pick<TargetRequest, 'signal'>,
): Promise<JsonObject | undefined> {
  return (await connection.call({ ...request, signal })).body
}

/** The outcome of the call is unknown; reading again shows it. */
export const isUncertain = (error: unknown): boolean => hasCode(error, 'TARGET_UNREACHABLE')
