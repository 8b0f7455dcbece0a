import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { distinctElements } from '#protocols/scim/filter/elements.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, isDateTime, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'

/**
 * A whole resource as a client sent it (POST, PUT), in the schema's own form. Ignores readOnly and unknown
 * attributes, and unknown schema URIs, since clients send them; in strict mode, only readOnly ones. `unknown` may
 * reject unknown ones as well. A repeated value is kept once. Throws invalidSyntax or invalidValue.
 */
export function readResource(
  schema: ResourceSchema,
  body: JsonValue,
  options: ReadOptions = clientValues,
): ScimResource {
  const strict = options.strict === true
  const raw = requireMessage(body, strict ? schema.core.id : undefined)
  const listed = strict ? knownSchemas(schema, raw['schemas']) : undefined
  const resource: ScimResource = {}
  for (const [name, value] of Object.entries(raw)) {
    const resolved = schema.resolve(name, strict)
    if (resolved === undefined && strict) throw unknownAttribute(name)
    if (resolved === undefined && value !== null) options.unknown?.(name)
    if (resolved === undefined || value === null) continue
    if (resolved.kind === 'attribute') {
      readInto(schema, resource, resolved, value, options)
      continue
    }
    const { id } = resolved.schema
    if (!isJsonObject(value)) throw scimError('invalidValue', `${id} must be an object.`)
    if (listed?.has(id) === false)
      throw scimError('invalidValue', `schemas must contain ${id}, since the resource has its attributes.`)
    for (const [inner, part] of Object.entries(value)) {
      const path = inner.includes(':') ? undefined : schema.resolveAttribute(`${id}:${inner}`, strict)
      if (path === undefined && strict) throw unknownAttribute(inner)
      if (path === undefined && part !== null) options.unknown?.(inner)
      if (path !== undefined && part !== null) readInto(schema, resource, path, part, options)
    }
  }
  for (const ref of schema.attributes()) {
    if (!ref.attribute.multiValued) continue
    const value = readAttribute(resource, ref)
    if (Array.isArray(value)) writeAttribute(resource, ref, distinctElements(ref.attribute, value))
  }
  return resource
}

/** The ids of the schemas that a body names. Throws invalidValue for one that the resource does not have. */
function knownSchemas(schema: ResourceSchema, uris: JsonValue | undefined): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const uri of Array.isArray(uris) ? uris : []) {
    const text = typeof uri === 'string' ? uri : ''
    const resolved = schema.resolve(text, true)
    if (resolved?.kind !== 'schema')
      throw scimError('invalidValue', `schemas: ${quoted(text)} is unknown. /Schemas lists the known schemas.`)
    ids.add(resolved.schema.id)
  }
  return ids
}

function readInto(
  schema: ResourceSchema,
  resource: ScimResource,
  path: AttributePath,
  raw: JsonValue,
  options: ReadOptions,
): void {
  const { attribute, sub } = path
  if (attribute.mutability === 'readOnly' || sub?.mutability === 'readOnly') return
  if (sub === undefined) {
    writeAttribute(resource, path, readValue(schema, attribute, raw, options))
    return
  }
  if (attribute.multiValued) throw scimError('invalidValue', `${attribute.name} must be a list of objects.`)
  const value = readSingle(schema, sub, raw, options)
  const before = readAttribute(resource, path)
  if (value !== undefined)
    writeAttribute(resource, path, { ...(isJsonObject(before) ? before : {}), [sub.name]: value })
}

const unknownAttribute = (name: string) =>
  scimError(
    'invalidSyntax',
    `The resource has no attribute ${quoted(name)}. Check the name, and the schema in /Schemas.`,
  )

/** How many values one multi-valued attribute may have, except members of a group. */
export const maxValues = 500

export interface ReadOptions {
  /** readOnly parts are dropped from client input, and kept in what the service itself created. */
  readonly readOnly: 'drop' | 'keep'
  readonly maxValues: number
  /** Accepts only what the RFCs define: no values of a wrong type, no unknown names. */
  readonly strict?: boolean
  /** Called with the name of an attribute, or the URN of an extension, that no schema has; throws to reject it. */
  readonly unknown?: (name: string) => void
  /** An empty element of a list is rejected, because leaving it out would change the list. */
  readonly refuseEmpty?: boolean
}

export const clientValues: ReadOptions = { readOnly: 'drop', maxValues }

/**
 * The value in the schema's own form: names as the schema spells them, string booleans as booleans, one object for
 * a list as a list of one, a plain text for a complex attribute as its `value`, an object written as JSON in a text
 * as that object. Leaves out nulls, and unknown sub-attributes unless `unknown` rejects them. Undefined if nothing
 * remains. Throws invalidValue if it can't be read as the type; in strict mode, invalidSyntax for unknown
 * sub-attributes.
 */
export function readValue(
  schema: ResourceSchema,
  attribute: SchemaAttribute,
  raw: JsonValue,
  options: ReadOptions = clientValues,
): JsonValue | undefined {
  if (raw === null) return undefined
  if (!attribute.multiValued) {
    // Some clients send a list of one for a single complex value.
    const listed = Array.isArray(raw) && attribute.type === 'complex' && raw.length === 1 && options.strict !== true
    return readSingle(schema, attribute, listed ? (raw[0] ?? null) : raw, options)
  }
  const list = Array.isArray(raw) ? raw : [raw as JsonValue]
  if (list.length > options.maxValues) {
    throw scimError('invalidValue', `${attribute.name} has more than ${options.maxValues} values. Send fewer.`)
  }
  const values: JsonValue[] = []
  for (const item of list) {
    const value = readSingle(schema, attribute, item, options)
    if (value !== undefined) values.push(value)
    else if (options.refuseEmpty === true)
      throw scimError('invalidValue', `${attribute.name}: an element holds no value. Send its value, or leave it out.`)
  }
  return values.length === 0 ? undefined : values
}

/** One element of a multi-valued attribute, or the value of a single-valued one. */
export function readSingle(
  schema: ResourceSchema,
  attribute: SchemaAttribute,
  raw: JsonValue,
  options: ReadOptions = clientValues,
): JsonValue | undefined {
  if (raw === null) return undefined
  if (attribute.type !== 'complex') return readSimple(attribute, raw, options)
  if (isJsonObject(raw))
    return readComplex(schema, attribute, withoutJsonInText(schema, attribute, raw, options), options)
  const sub = typeof raw === 'string' && options.strict !== true ? defaultSubAttribute(attribute) : undefined
  const written = typeof raw === 'string' ? complexInText(schema, attribute, raw, options) : undefined
  if (written !== undefined) return readComplex(schema, attribute, written, options)
  if (sub === undefined) throw wrongType(attribute, 'an object')
  const value = raw === '' ? undefined : readSimple(sub, raw, options)
  return value === undefined ? undefined : { [sub.name]: value }
}

/** The object in a text for a complex attribute: JSON in which at least one name is a sub-attribute. */
export function complexInText(
  schema: ResourceSchema,
  attribute: SchemaAttribute,
  text: string,
  options: ReadOptions = clientValues,
): JsonObject | undefined {
  if (options.strict === true || attribute.type !== 'complex') return undefined
  const object = jsonInText(text)
  if (object === undefined) return undefined
  // Such texts usually contain more than the attribute has.
  const known = Object.entries(object).filter(([name]) => schema.subAttribute(attribute, name) !== undefined)
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

/** Unpacks an element whose `value` contains the element itself as JSON; its other parts stay. */
function withoutJsonInText(
  schema: ResourceSchema,
  attribute: SchemaAttribute,
  raw: JsonObject,
  options: ReadOptions,
): JsonObject {
  const text = raw['value']
  if (typeof text !== 'string' || !text.startsWith('{')) return raw
  const inner = complexInText(schema, attribute, text, options)
  return inner === undefined ? raw : { ...raw, value: null, ...inner }
}

function readComplex(
  schema: ResourceSchema,
  attribute: SchemaAttribute,
  raw: JsonObject,
  options: ReadOptions,
): JsonObject | undefined {
  const result: Record<string, JsonValue> = {}
  let empty = true
  for (const name of Object.keys(raw)) {
    const part = raw[name] ?? null
    const sub = schema.subAttribute(attribute, name)
    if (sub === undefined && options.strict === true) {
      throw scimError(
        'invalidSyntax',
        `${attribute.name} has no sub-attribute ${quoted(name)}. Check the name, and the schema in /Schemas.`,
      )
    }
    if (sub === undefined && part !== null) options.unknown?.(`${attribute.name}.${name}`)
    if (sub === undefined || (sub.mutability === 'readOnly' && options.readOnly === 'drop')) continue
    const value = readValue(schema, sub, part, options)
    if (value === undefined) continue
    result[sub.name] = value
    empty = false
  }
  return empty ? undefined : result
}

function readSimple(
  attribute: SchemaAttribute,
  raw: JsonValue,
  { strict = false }: ReadOptions,
): JsonValue | undefined {
  switch (attribute.type) {
    case 'boolean':
      return readBoolean(attribute, raw, strict)
    case 'integer':
    case 'decimal':
      return readNumber(attribute, raw, strict)
    case 'dateTime':
      if (typeof raw === 'string' && isDateTime(raw)) return raw
      throw wrongType(attribute, 'a date and time')
    case 'binary':
      if (strict && (typeof raw !== 'string' || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(raw)))
        throw wrongType(attribute, 'base64')
      return readText(attribute, raw)
    default:
      return readText(attribute, raw)
  }
}

function readBoolean(attribute: SchemaAttribute, raw: JsonValue, strict: boolean): boolean {
  if (typeof raw === 'boolean') return raw
  const word = typeof raw === 'string' && raw.length <= 5 && !strict ? raw.toLowerCase() : ''
  if (word === 'true' || word === 'false') return word === 'true'
  throw wrongType(attribute, 'true or false')
}

function readNumber(attribute: SchemaAttribute, raw: JsonValue, strict: boolean): number {
  const number = typeof raw === 'string' && !strict && /^-?\d{1,15}(\.\d{1,15})?$/.test(raw) ? Number(raw) : raw
  const whole = attribute.type === 'integer'
  // JSON parses a number that is too large as infinite, which JSON can't write.
  if (typeof number === 'number' && (whole ? Number.isSafeInteger(number) : Number.isFinite(number))) return number
  throw wrongType(attribute, whole ? 'a whole number' : 'a number')
}

function readText(attribute: SchemaAttribute, raw: JsonValue): string {
  if (typeof raw !== 'string') throw wrongType(attribute, 'a text')
  // Not every store can store these. The error does not show the value, which may be a password.
  if (!raw.isWellFormed() || raw.includes('\0')) {
    throw scimError(
      'invalidValue',
      `${attribute.name} contains NUL or half of a surrogate pair. Remove that character.`,
    )
  }
  return raw
}

const wrongType = (attribute: SchemaAttribute, wanted: string) =>
  scimError('invalidValue', `${attribute.name} must be ${wanted}.`)

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

/** Throws invalidSyntax. */
export function requireSchema(schemas: readonly JsonValue[], wanted: string): void {
  const isWanted = (uri: JsonValue): boolean => typeof uri === 'string' && uri.toLowerCase() === wanted.toLowerCase()
  if (!schemas.some(isWanted)) throw scimError('invalidSyntax', `schemas must contain ${wanted}.`)
}

/** Longer texts are not complex values. */
const longestObject = 65_536

/** The JSON object in a text, as some clients send complex values; undefined if there is none. */
export function jsonInText(text: string): JsonObject | undefined {
  if (text.length > longestObject || !/^\s*\{/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
