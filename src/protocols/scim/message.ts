import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { requireMessage, requireSchema } from '#protocols/scim/read-resource.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'

/** A member of a message, in any letter case; undefined if it is absent or null. */
export function member(message: JsonObject, name: string): JsonValue | undefined {
  if (Object.hasOwn(message, name)) return message[name] ?? undefined
  const lower = name.toLowerCase()
  const key = Object.keys(message).find((candidate) => candidate.toLowerCase() === lower)
  return key === undefined ? undefined : (message[key] ?? undefined)
}

export function textMember(message: JsonObject, name: string): string | undefined {
  const value = member(message, name)
  if (value === undefined || typeof value === 'string') return value
  throw scimError('invalidValue', `${name} must be a text.`)
}

export function wholeMember(message: JsonObject, name: string): number | undefined {
  const value = member(message, name)
  if (value === undefined || (typeof value === 'number' && Number.isSafeInteger(value))) return value
  throw scimError('invalidValue', `${name} must be a whole number.`)
}

/** The body of a message of this schema. A body without `schemas` is accepted. Throws invalidSyntax. */
export function requireMessageOf(body: JsonValue, schema: string): JsonObject {
  const message = requireMessage(body)
  const schemas = member(message, 'schemas')
  if (Array.isArray(schemas) && schemas.length > 0) requireSchema(schemas, schema)
  return message
}
