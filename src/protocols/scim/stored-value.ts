import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { type AttributeType, isDateTime, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'

/** Decodes a stored text; undefined for a text that the built-in mapping does not write. */
type Decode = (text: string) => JsonValue | undefined

const number = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/

interface SimpleType {
  readonly decode: Decode
  /** Whether a part of a JSON element has the type. */
  readonly fits: (value: JsonValue) => boolean
}

const text: SimpleType = { decode: (stored) => stored, fits: (value) => typeof value === 'string' }

const simpleTypes: Readonly<Record<Exclude<AttributeType, 'complex'>, SimpleType>> = {
  string: text,
  reference: text,
  binary: text,
  boolean: {
    decode: (stored) => (stored === 'true' ? true : stored === 'false' ? false : undefined),
    fits: (value) => typeof value === 'boolean',
  },
  integer: {
    decode: (stored) => (number.test(stored) && Number.isSafeInteger(Number(stored)) ? Number(stored) : undefined),
    fits: (value) => Number.isSafeInteger(value),
  },
  decimal: {
    decode: (stored) => (number.test(stored) ? Number(stored) : undefined),
    fits: (value) => typeof value === 'number',
  },
  dateTime: {
    decode: (stored) => (isDateTime(stored) ? stored : undefined),
    fits: (value) => typeof value === 'string' && isDateTime(value),
  },
}

/** Chosen once per attribute, since it runs for every value of every user that is shown. */
export const decoder = ({ type, subAttributes }: SchemaAttribute): Decode =>
  type === 'complex' ? elementDecoder(subAttributes) : simpleTypes[type].decode

/** One element of a list as JSON text. Others can write to the target too, so the element is validated. */
function elementDecoder(subAttributes: readonly SchemaAttribute[]): Decode {
  const fits = new Map(subAttributes.map((sub) => [sub.name, fitsType(sub)]))
  return (text) => {
    if (!text.startsWith('{') && !text.startsWith(emptyMark)) return undefined
    const element = parsed(text)
    if (element === undefined) return undefined
    let empty = true
    for (const name in element) {
      const value = element[name]
      if (value === undefined || fits.get(name)?.(value) !== true) return undefined
      empty = false
    }
    return empty ? undefined : element
  }
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function fitsType({ type, multiValued }: SchemaAttribute): (value: JsonValue) => boolean {
  const fits = type === 'complex' ? () => false : simpleTypes[type].fits
  return multiValued ? (value) => Array.isArray(value) && value.length > 0 && value.every(fits) : fits
}

/** The first text of a list starts like this if no element has a part that SCIM counts as present. */
export const emptyMark = ' {'

/** The texts that `decoder` reads back. */
export function encodeList(attribute: SchemaAttribute, values: readonly JsonValue[]): string[] {
  const texts = values.map((value) => encode(attribute, value))
  const [first, ...rest] = texts
  if (attribute.type !== 'complex' || first === undefined || !values.every(isBlank)) return texts
  return [` ${first}`, ...rest]
}

const isBlank = (value: JsonValue): boolean => {
  if (value === '') return true
  if (Array.isArray(value)) return value.every(isBlank)
  return isJsonObject(value) && Object.values(value).every(isBlank)
}

/** The parts of an element are in the order of the schema, so that equal elements are equal texts. */
function encode(attribute: SchemaAttribute, value: JsonValue): string {
  if (attribute.type !== 'complex' || !isJsonObject(value)) return String(value)
  const ordered: Record<string, JsonValue> = {}
  for (const { name } of attribute.subAttributes) {
    const part = value[name]
    if (part !== undefined) ordered[name] = part
  }
  return JSON.stringify(ordered)
}
