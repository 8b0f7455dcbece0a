import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { isDateTime } from '#protocols/scim/date-time.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'

/** How many values one multi-valued attribute may have, members of a group apart. */
export const maxValues = 500

export interface ReadOptions {
  /** What clients send has readOnly parts, which are ignored; what the service itself made keeps them. */
  readonly readOnly: 'drop' | 'keep'
  readonly maxValues: number
}

export const clientValues: ReadOptions = { readOnly: 'drop', maxValues }

/**
 * The value in the schema's own form: names as the schema spells them, string booleans as booleans, one object for a
 * list as a list of one, a plain text for a complex attribute as its `value`. Nulls are left out, unknown
 * sub-attributes too. Undefined when nothing remains. Throws invalidValue when it cannot be read as the type.
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
    const single = Array.isArray(raw) && attribute.type === 'complex' && raw.length === 1 ? (raw[0] ?? null) : raw
    return readSingle(schema, attribute, single, options)
  }
  const list = Array.isArray(raw) ? raw : [raw as JsonValue]
  if (list.length > options.maxValues) {
    throw scimError('invalidValue', `${attribute.name} has more than ${options.maxValues} values.`)
  }
  const values = list.flatMap((item: JsonValue) => readSingle(schema, attribute, item, options) ?? [])
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
  if (attribute.type !== 'complex') return readSimple(attribute, raw)
  if (isJsonObject(raw)) return readComplex(schema, attribute, raw, options)
  const sub = typeof raw === 'string' ? defaultSubAttribute(attribute) : undefined
  if (sub === undefined) throw wrongType(attribute, 'an object')
  const value = readSimple(sub, raw)
  return value === undefined ? undefined : { [sub.name]: value }
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
    if (sub === undefined || (sub.mutability === 'readOnly' && options.readOnly === 'drop')) continue
    const value = readValue(schema, sub, part, options)
    if (value === undefined) continue
    result[sub.name] = value
    empty = false
  }
  return empty ? undefined : result
}

function readSimple(attribute: SchemaAttribute, raw: JsonValue): JsonValue | undefined {
  switch (attribute.type) {
    case 'boolean':
      return readBoolean(attribute, raw)
    case 'integer':
    case 'decimal':
      return readNumber(attribute, raw)
    case 'dateTime':
      if (typeof raw === 'string' && isDateTime(raw)) return raw
      throw wrongType(attribute, 'a date and time')
    default:
      return readText(attribute, raw)
  }
}

function readBoolean(attribute: SchemaAttribute, raw: JsonValue): boolean {
  if (typeof raw === 'boolean') return raw
  const word = typeof raw === 'string' ? raw.toLowerCase() : ''
  if (word === 'true' || word === 'false') return word === 'true'
  throw wrongType(attribute, 'true or false')
}

function readNumber(attribute: SchemaAttribute, raw: JsonValue): number {
  const number = typeof raw === 'string' && /^-?\d{1,15}(\.\d{1,15})?$/.test(raw) ? Number(raw) : raw
  const whole = attribute.type === 'integer'
  if (typeof number === 'number' && (!whole || Number.isSafeInteger(number))) return number
  throw wrongType(attribute, whole ? 'a whole number' : 'a number')
}

function readText(attribute: SchemaAttribute, raw: JsonValue): string {
  if (typeof raw !== 'string') throw wrongType(attribute, 'a text')
  // Neither can be kept by every store as it was sent.
  if (!raw.isWellFormed() || raw.includes('\0')) {
    throw scimError(
      'invalidValue',
      `${attribute.name} holds a character that is not allowed: ${quoted(raw.toWellFormed())}.`,
    )
  }
  return raw
}

const wrongType = (attribute: SchemaAttribute, wanted: string) =>
  scimError('invalidValue', `${attribute.name} must be ${wanted}.`)
