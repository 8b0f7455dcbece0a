import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { isDateTime, type SchemaAttribute } from '#protocols/scim/schema.ts'

/** Decodes a stored text; undefined for a text that the built-in mapping does not write. */
export type Decode = (text: string) => JsonValue | undefined

const number = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/

/** Chosen once per attribute, since it runs for every value of every user that is shown. */
export function decoder({ type, subAttributes }: SchemaAttribute): Decode {
  switch (type) {
    case 'boolean':
      return (text) => (text === 'true' ? true : text === 'false' ? false : undefined)
    case 'integer':
      return (text) => (number.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined)
    case 'decimal':
      return (text) => (number.test(text) ? Number(text) : undefined)
    case 'dateTime':
      return (text) => (isDateTime(text) ? text : undefined)
    case 'complex':
      return elementDecoder(subAttributes)
    default:
      return (text) => text
  }
}

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

function fitsType(attribute: SchemaAttribute): (value: JsonValue) => boolean {
  const one = fitsOne(attribute)
  if (!attribute.multiValued) return one
  return (value) => Array.isArray(value) && value.length > 0 && value.every(one)
}

function fitsOne({ type }: SchemaAttribute): (value: JsonValue) => boolean {
  switch (type) {
    case 'boolean':
      return (value) => typeof value === 'boolean'
    case 'integer':
      return (value) => Number.isSafeInteger(value)
    case 'decimal':
      return (value) => typeof value === 'number'
    case 'dateTime':
      return (value) => typeof value === 'string' && isDateTime(value)
    case 'complex':
      return () => false
    default:
      return (value) => typeof value === 'string'
  }
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
