import { type JsonBounds, parseBoundedJson } from '#kernel/bounded-json.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { scimError, scimMediaType } from '#protocols/scim/schema/scim-error.ts'

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

/**
 * The body as an object whose `schemas`, if present, is a list of texts. With `demanded`, the list must be present
 * and contain that schema. Throws invalidSyntax.
 */
export function requireMessage(body: JsonValue, demanded?: string): JsonObject {
  if (!isJsonObject(body)) throw scimError('invalidSyntax', 'The body must be a JSON object.')
  const schemas = body['schemas']
  const list = Array.isArray(schemas) && schemas.every((uri: JsonValue) => typeof uri === 'string')
  if (!list && ((schemas !== undefined && schemas !== null) || demanded !== undefined)) {
    throw scimError('invalidSyntax', 'schemas must be a list of URIs.')
  }
  if (list && demanded !== undefined) requireSchema(schemas, demanded)
  return body
}

/** The body of a message of this schema. A body without `schemas` is accepted. Throws invalidSyntax. */
export function requireMessageOf(body: JsonValue, schema: string): JsonObject {
  const message = requireMessage(body)
  const schemas = member(message, 'schemas')
  if (Array.isArray(schemas) && schemas.length > 0) requireSchema(schemas, schema)
  return message
}

function requireSchema(schemas: readonly JsonValue[], wanted: string): void {
  const isWanted = (uri: JsonValue): boolean => typeof uri === 'string' && uri.toLowerCase() === wanted.toLowerCase()
  if (!schemas.some(isWanted)) throw scimError('invalidSyntax', `schemas must contain ${wanted}.`)
}

const accepted = new Set([scimMediaType, 'application/json'])

/** `application/scim+json`, `application/json` or a type that `other` matches, in no other charset than UTF-8. */
export function isJsonContent(contentType: string | undefined, other?: RegExp): boolean {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  if (!isJson(type.trim(), other)) return false
  return parameters.every((parameter) => {
    const [name = '', value = ''] = parameter.split('=')
    return name.trim() !== 'charset' || ['utf-8', '"utf-8"', 'utf8'].includes(value.trim())
  })
}

const isJson = (type: string, other: RegExp | undefined): boolean => accepted.has(type) || other?.test(type) === true

/** Whether the Accept header, if any, allows a JSON response. */
export function acceptsJson(accept: string | undefined, other?: RegExp): boolean {
  if (accept === undefined || accept.trim() === '') return true
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
      const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
      return !refused && (type === '*/*' || type === 'application/*' || isJson(type, other))
    })
}

/** Room for the largest documented requests: 100,000 members of a group, and 1,000 operations of a bulk request. */
export const scimBounds: JsonBounds = { depth: 64, members: 1_000, elements: 150_000, values: 500_000 }

/** Throws INVALID_JSON if it is not UTF-8, not JSON, or exceeds the bounds. */
export const parseBody = (bytes: Buffer): JsonValue => parseBoundedJson(bytes, scimBounds).value

/** Longer texts are not complex values. */
const maxLength = 65_536

/** The JSON object in a text, as some clients send complex values; undefined if there is none. */
export function jsonInText(text: string): JsonObject | undefined {
  if (text.length > maxLength || !/^\s*\{/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
