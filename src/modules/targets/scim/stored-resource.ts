import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { member } from '#protocols/scim/message.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import type { ScimService, ServiceModel } from './service-model.ts'

/** A user or group with the resource that it was read from. */
export interface Stored<T> {
  readonly entry: T & { readonly id: string }
  /** As the server sent it. */
  readonly raw: JsonObject
  /** As the schema spells it. */
  readonly resource: ScimResource
}

export type StoredUser = Stored<User>
export type StoredGroup = Stored<Group>

/** Throws TARGET_FAILED for what is no user. Groups are as the resource tells them. */
export function readUser(raw: JsonObject, model: ServiceModel, service: ScimService): StoredUser {
  const id = requiredText(raw, 'id', service)
  const userID = requiredText(raw, 'userName', service)
  const resource = model.users.normalize(raw, reporting(service, id))
  const all = elements(raw, 'groups')
  const typeOf = (group: JsonObject) => textOf(group, 'type')?.toLowerCase()
  const groups = all.filter((group) => typeOf(group) !== 'indirect')
  // A server that says of each group how the user is in it would name those that it is in through others, too.
  const areAllDirect = all.length > 0 && all.every((group) => typeOf(group) === 'direct')
  const told = groups.flatMap((group) => {
    const value = textOf(group, 'value')
    return value === undefined ? [] : [{ id: value, name: textOf(group, 'display') ?? '' }]
  })
  const attributes = model.users.attributes(resource)
  attributes.set('userName', [userID])
  const entry = {
    id,
    userID,
    attributes,
    groups: told.map(({ name }) => name),
    groupIds: told.map((group) => group.id),
    ...(areAllDirect && service.memberships === 'user' ? { groupsAreNested: false } : {}),
    ...metaOf(raw, model),
  }
  return { entry, raw, resource }
}

/** Throws TARGET_FAILED for what is no group. The names of member groups that it does not tell are empty. */
export function readGroup(raw: JsonObject, model: ServiceModel, service: ScimService): StoredGroup {
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
