import { Attributes } from '#identity/attributes.ts'
import { toTexts } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import type { JsonObject } from '#kernel/json.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import { replaceResource } from '#protocols/scim/resource-rules.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { redacted, scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { withHiddenValues } from './hidden-values.ts'
import type { FoundUser } from './lookups.ts'
import { requireAddress } from './resource-address.ts'
import { scimSource } from './scim-source.ts'

/** What a workflow is started with for a new user. */
export async function newUser(parts: GatewayParts, resource: JsonObject): Promise<User> {
  const login = loginOf(resource)
  const attributes = await internalAttributes(parts, resource, login)
  const { loginAttribute } = parts.config.users
  const userID = attributes.first(loginAttribute) ?? login
  requireAddressable(userID)
  if (!attributes.has(loginAttribute)) attributes.set(loginAttribute, [userID])
  return { userID, attributes, groups: [] }
}

/** What a workflow is started with to change a user. */
export interface UserChange {
  readonly user: User
  /** Attributes that had values and are to have none. */
  readonly cleared: readonly string[]
  /** The login that the user is to have from now on, where it is another one. */
  readonly newUserID: string | undefined
}

/**
 * What brings a user from one resource to another, or undefined when nothing that this gateway keeps has changed. An
 * attribute whose mapping gives the same before and after keeps the stored values. One that changes keeps those stored
 * values that clients can't see, so that they aren't lost by what clients don't send. Throws uniqueness when the new userName is another user's.
 */
export async function changedUser(
  parts: GatewayParts,
  found: FoundUser,
  before: JsonObject,
  after: JsonObject,
): Promise<UserChange | undefined> {
  const { produces, loginAttribute, mapping } = parts.config.users
  const stored = found.user
  const old = await internalAttributes(parts, before, stored.userID)
  const fresh = await internalAttributes(parts, after, parts.lookups.renamesUsers ? loginOf(after) : stored.userID)
  const logins = { before: old.first(loginAttribute), after: fresh.first(loginAttribute) }
  const newUserID = await newLogin(parts, found, before, after, logins)
  const attributes = new Attributes()
  const cleared: string[] = []
  let changed = newUserID !== undefined
  for (const attribute of produces) {
    const visible = old.values(attribute)
    const wanted = fresh.values(attribute)
    const same = sameValue(visible, wanted)
    const held = stored.attributes.values(attribute)
    const values =
      same && held.length > 0 ? held : withHiddenValues(mapping, attribute, { stored: held, visible, wanted })
    attributes.set(attribute, values)
    changed ||= !same
    if (!same && values.length === 0) cleared.push(attribute)
  }
  if (!changed) return undefined
  if (!attributes.has(loginAttribute)) attributes.set(loginAttribute, [newUserID ?? stored.userID])
  return { user: { ...stored, attributes, groups: [] }, cleared, newUserID }
}

/**
 * Workflows find a user by the login, so another one is either handed to them as such or refused. Where users cannot be
 * renamed, letter case may change, since it does not make another login.
 */
async function newLogin(
  parts: GatewayParts,
  { id, user }: FoundUser,
  before: JsonObject,
  after: JsonObject,
  mapped: { readonly before: string | undefined; readonly after: string | undefined },
): Promise<string | undefined> {
  const { lookups } = parts
  if (!lookups.renamesUsers) {
    if (loginOf(before).toLowerCase() === loginOf(after).toLowerCase()) return undefined
    throw scimError(
      'mutability',
      'userName cannot be changed: this gateway knows users by it. Create another user instead.',
    )
  }
  const wanted = mapped.after ?? loginOf(after)
  if (wanted === (mapped.before ?? loginOf(before)) || wanted === user.userID) return undefined
  requireAddressable(wanted)
  const holder = await lookups.userByLogin(wanted)
  if (holder !== undefined && holder.id !== id) throw loginTaken(wanted)
  return wanted
}

export const loginTaken = (login: string) =>
  scimError('uniqueness', `userName: another user has ${redacted(login)}. Choose another one, or change that user.`)

/** What a PUT makes of a user. What clients are never shown they cannot send back, so leaving it out keeps it. */
export function replacedUser(schema: ResourceSchema, before: JsonObject, sent: JsonObject): ScimResource {
  const after = replaceResource(schema, before, sent)
  for (const ref of schema.attributes()) {
    if (ref.attribute.returned !== 'never' || readAttribute(sent, ref) !== undefined) continue
    writeAttribute(after, ref, readAttribute(before, ref))
  }
  // A provider that doesn't send `active` doesn't mean to turn an account on or off.
  const { active } = before
  if (sent['active'] === undefined && active !== undefined) after['active'] = active
  return after
}

/** A user of whom only the login matters, as membership workflows need it. */
export function bareUser(parts: GatewayParts, stored: User): User {
  const { loginAttribute, lookupAttribute } = parts.config.users
  const attributes = Attributes.from([[loginAttribute, [stored.userID]]])
  attributes.set(lookupAttribute, [stored.userID])
  return { ...stored, attributes, groups: [] }
}

export function loginOf(resource: JsonObject): string {
  const login = resource['userName']
  if (typeof login !== 'string' || login === '')
    throw scimError('invalidValue', 'userName is required. Send it as a text.')
  return login
}

/** A login can be the user's id, and then it stands in an address, where clients fold `.` and `..` away. */
function requireAddressable(login: string): void {
  if (login.trim() === '') throw scimError('invalidValue', 'userName must not be blank.')
  requireAddress('userName', login)
}

/** By the built-in mapping, then by the lines. */
async function internalAttributes(parts: GatewayParts, resource: JsonObject, login: string): Promise<Attributes> {
  const { users, toInternal } = parts.config
  const attributes = new Attributes()
  users.mapping.store(resource, attributes)
  for (const name of (await parts.storage.users()).unstorable) attributes.delete(name)
  if (toInternal.produces.length === 0) return attributes
  for (const [name, value] of await parts.toInternal.apply(scimSource(users.schema, resource, login))) {
    attributes.set(name, toTexts(value))
  }
  return attributes
}
