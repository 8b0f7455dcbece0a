import { Attributes } from '#identity/attributes.ts'
import { type MappedValue, toTexts } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import type { JsonObject } from '#kernel/json.ts'
import { sameValue } from '#protocols/scim/resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayParts } from './gateway-parts.ts'
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

/**
 * What a workflow is started with to bring a user from one resource to another, or undefined when nothing that this
 * gateway keeps has changed. An attribute whose mapping gives the same before and after keeps the stored value, so
 * that what clients cannot see is not lost by what they do not send.
 */
export async function changedUser(
  parts: GatewayParts,
  stored: User,
  before: JsonObject,
  after: JsonObject,
): Promise<User | undefined> {
  requireSameLogin(before, after)
  const old = await internalAttributes(parts, before, stored.userID)
  const fresh = await internalAttributes(parts, after, stored.userID)
  const attributes = new Attributes()
  let changed = false
  for (const { attribute } of parts.config.toInternal.produces) {
    const same = sameValue(old.values(attribute), fresh.values(attribute))
    const kept = stored.attributes.values(attribute)
    attributes.set(attribute, same && kept.length > 0 ? kept : fresh.values(attribute))
    changed ||= !same
  }
  if (!changed) return undefined
  const { loginAttribute } = parts.config.users
  if (!attributes.has(loginAttribute)) attributes.set(loginAttribute, [stored.userID])
  return { ...stored, attributes, groups: [] }
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
  if (typeof login !== 'string' || login === '') throw scimError('invalidValue', 'userName is required.')
  return login
}

/** The longest login whose address still fits into a request. */
const maxEncodedLogin = 6000

/** A login can be the user's id, and then it stands in an address, where clients fold `.` and `..` away. */
function requireAddressable(login: string): void {
  if (!['.', '..', '.search'].includes(login) && encodeURIComponent(login).length <= maxEncodedLogin) return
  throw scimError('invalidValue', 'This userName cannot stand in an address.')
}

/** Workflows find a user by the login, so under another one they would make a second user. Letter case may change. */
function requireSameLogin(before: JsonObject, after: JsonObject): void {
  if (loginOf(before).toLowerCase() === loginOf(after).toLowerCase()) return
  throw scimError('mutability', 'userName cannot be changed through this gateway.')
}

async function internalAttributes(parts: GatewayParts, resource: JsonObject, login: string): Promise<Attributes> {
  const mapped = await parts.toInternal.apply(scimSource(parts.config.users.schema, resource, login))
  const texts = Array.from(mapped, ([name, value]: readonly [string, MappedValue]) => [name, toTexts(value)] as const)
  return Attributes.from(texts)
}
