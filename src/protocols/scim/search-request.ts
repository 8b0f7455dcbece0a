import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { member, requireMessageOf, textMember, wholeMember } from '#protocols/scim/message-member.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export const searchSchema = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest'

/**
 * The body of `POST .search` (RFC 7644 3.4.3, with RFC 9865's cursor) as the query that a GET would have. Throws
 * invalidSyntax when it is no such message, invalidValue when a parameter is of another type. Others are ignored.
 */
export function readSearchRequest(body: JsonValue): URLSearchParams {
  const message = requireMessageOf(body, searchSchema)
  const query = new URLSearchParams()
  const put = (name: string, value: string | number | undefined): void => {
    if (value !== undefined) query.set(name, String(value))
  }
  for (const name of ['attributes', 'excludedAttributes']) put(name, namesMember(message, name))
  for (const name of ['filter', 'sortBy', 'sortOrder', 'cursor']) put(name, textMember(message, name))
  for (const name of ['startIndex', 'count']) put(name, wholeMember(message, name))
  return query
}

function namesMember(message: JsonObject, name: string): string | undefined {
  const value = member(message, name)
  if (value === undefined) return undefined
  const names: readonly JsonValue[] = Array.isArray(value) ? value : []
  if (!Array.isArray(value) || !names.every((item) => typeof item === 'string')) {
    throw scimError('invalidValue', `${name} must be a list of texts.`)
  }
  return names.length === 0 ? undefined : names.join(',')
}
