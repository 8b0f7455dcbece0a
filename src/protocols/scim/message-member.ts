import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { requireMessage } from '#protocols/scim/read-resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

/** A message's own member, whatever letter case it is written in; undefined where it is absent or null. */
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

/** A body that says it is this message; one that does not say what it is is taken for it. Throws invalidSyntax. */
export function requireMessageOf(body: JsonValue, schema: string): JsonObject {
  const message = requireMessage(body)
  const schemas = member(message, 'schemas')
  const names: readonly JsonValue[] = Array.isArray(schemas) ? schemas : []
  const wanted = schema.toLowerCase()
  if (names.length > 0 && !names.some((uri) => typeof uri === 'string' && uri.toLowerCase() === wanted)) {
    throw scimError('invalidSyntax', `schemas must contain ${schema}.`)
  }
  return message
}
