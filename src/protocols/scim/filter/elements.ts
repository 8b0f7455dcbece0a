import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import { equalBySchema, foldBySchema } from './evaluate-filter.ts'

/**
 * A key that is equal for values of a multi-valued attribute that are the same value. RFC 7643 2.4 identifies a value by
 * `type` and `value`; one whose `value` cannot change, such as a member, by that alone; one without `value` by all its
 * parts. Keys make the cost linear in the length of a list.
 */
export function identityOf(attribute: SchemaAttribute, element: JsonValue): string {
  if (!isJsonObject(element)) return keyOf(attribute, element)
  const value = valueKey(attribute, element)
  if (value === undefined) return JSON.stringify(attribute.subAttributes.map((sub) => partKey(sub, element)))
  return isReference(attribute) ? value : `${value.length}:${value}${typeKey(attribute, element) ?? ''}`
}

/** A value that cannot change identifies the element. */
const isReference = (attribute: SchemaAttribute): boolean => defaultSubAttribute(attribute)?.mutability === 'immutable'

const keyOf = (leaf: SchemaAttribute, value: JsonValue): string =>
  typeof value === 'string' ? `"${foldBySchema(leaf, value)}` : JSON.stringify(value)

const partKey = (sub: SchemaAttribute, element: JsonObject): string | undefined => {
  const part = element[sub.name]
  return part === undefined ? undefined : keyOf(sub, part)
}

function valueKey(attribute: SchemaAttribute, element: JsonObject): string | undefined {
  const sub = defaultSubAttribute(attribute)
  return sub === undefined ? undefined : partKey(sub, element)
}

function typeKey(attribute: SchemaAttribute, element: JsonObject): string | undefined {
  const sub = attribute.subAttributes.find(({ name }) => name === 'type')
  return sub === undefined ? undefined : partKey(sub, element)
}

/** The parts that a value has. An element with the same values in these parts covers it. */
function shapeOf(attribute: SchemaAttribute, value: JsonObject): readonly SchemaAttribute[] {
  return attribute.subAttributes.filter(({ name }) => value[name] !== undefined)
}

function shapeKey(shape: readonly SchemaAttribute[], element: JsonObject): string {
  const [only] = shape
  if (only !== undefined && shape.length === 1) return partKey(only, element) ?? ''
  return JSON.stringify(shape.map((sub) => partKey(sub, element)))
}

/** The most keys that one operation may create if values are identified by arbitrary parts. */
const maxShapeKeys = 250_000

function requireFewKeys(attribute: SchemaAttribute, keys: number): void {
  if (keys <= maxShapeKeys) return
  throw scimError(
    'invalidValue',
    `${attribute.name}: the values have too many different combinations of parts. Split the request.`,
  )
}

/** The positions of elements by their identity. */
class ElementIndex {
  readonly #attribute: SchemaAttribute
  readonly #elements: readonly JsonValue[]
  readonly #byIdentity = new Map<string, number>()
  #shapeKeys = 0
  /** By shape, the combination of parts, and then by the values of these parts. */
  readonly #byShape = new Map<string, { shape: readonly SchemaAttribute[]; places: Map<string, number> }>()

  /** `added` must be called after each push to `elements`. */
  constructor(attribute: SchemaAttribute, elements: readonly JsonValue[]) {
    this.#attribute = attribute
    this.#elements = elements
    for (let at = 0; at < elements.length; at++) this.#note(at)
  }

  /** The position of the same value. */
  same(value: JsonValue): number | undefined {
    return this.#byIdentity.get(identityOf(this.#attribute, value))
  }

  /** The same, or, for a value without type or without `value`, an element that has all its parts. */
  covering(value: JsonValue): number | undefined {
    const same = this.same(value)
    if (same !== undefined || !isJsonObject(value)) return same
    const sub = defaultSubAttribute(this.#attribute)
    if (sub === undefined || value[sub.name] === undefined) return this.#atShape(value, shapeOf(this.#attribute, value))
    return value['type'] === undefined && !isReference(this.#attribute) ? this.#atShape(value, [sub]) : undefined
  }

  added(): void {
    const at = this.#elements.length - 1
    this.#note(at)
    for (const { shape, places } of this.#byShape.values()) this.#noteShape(shape, places, at)
  }

  #note(at: number): void {
    const key = identityOf(this.#attribute, this.#elements[at] ?? null)
    if (!this.#byIdentity.has(key)) this.#byIdentity.set(key, at)
  }

  #atShape(value: JsonObject, shape: readonly SchemaAttribute[]): number | undefined {
    const name = shape.map((sub) => sub.name).join(' ')
    let known = this.#byShape.get(name)
    if (known === undefined) {
      known = { shape, places: new Map() }
      this.#byShape.set(name, known)
      for (let at = 0; at < this.#elements.length; at++) this.#noteShape(shape, known.places, at)
    }
    return known.places.get(shapeKey(shape, value))
  }

  #noteShape(shape: readonly SchemaAttribute[], places: Map<string, number>, at: number): void {
    requireFewKeys(this.#attribute, ++this.#shapeKeys)
    const element = this.#elements[at]
    if (!isJsonObject(element)) return
    const key = shapeKey(shape, element)
    if (!places.has(key)) places.set(key, at)
  }
}

/** Matches elements by the `value` and, if given, `type` of one of the values; without `value`, by all its parts. */
export function elementMatcher(
  attribute: SchemaAttribute,
  values: readonly JsonValue[],
  elements: number,
): (element: JsonValue) => boolean {
  const plain = new Set<string>()
  const shapes = new Map<string, { shape: readonly SchemaAttribute[]; keys: Set<string> }>()
  const identifying = attribute.subAttributes.filter(
    ({ name }) => name === 'value' || (name === 'type' && !isReference(attribute)),
  )
  for (const value of values) {
    if (!isJsonObject(value)) {
      plain.add(keyOf(attribute, value))
      continue
    }
    const known = valueKey(attribute, value) !== undefined
    const shape = known ? identifying.filter(({ name }) => value[name] !== undefined) : shapeOf(attribute, value)
    if (shape.length === 0) continue
    const name = shape.map((sub) => sub.name).join(' ')
    const entry = shapes.get(name) ?? { shape, keys: new Set() }
    shapes.set(name, entry)
    entry.keys.add(shapeKey(shape, value))
  }
  requireFewKeys(attribute, shapes.size * elements)
  const kinds = [...shapes.values()]
  return (element) =>
    isJsonObject(element)
      ? kinds.some(({ shape, keys }) => keys.has(shapeKey(shape, element)))
      : plain.has(keyOf(attribute, element))
}

interface Joined {
  readonly elements: JsonValue[]
  /** The elements that are new or changed. */
  readonly touched: ReadonlySet<JsonValue>
}

/**
 * Adds the given values to the elements. A value that exists is not repeated: its other parts are updated, except for a
 * reference. With `covered`, a value without a type matches any type.
 */
export function joinElements(
  attribute: SchemaAttribute,
  elements: readonly JsonValue[],
  given: readonly JsonValue[],
  match: 'same' | 'covered',
): Joined {
  requireOnePrimary(attribute, given)
  const after = [...elements]
  const index = new ElementIndex(attribute, after)
  const touched = new Set<JsonValue>()
  for (const value of given) {
    const at = match === 'same' ? index.same(value) : index.covering(value)
    const known = at === undefined ? undefined : after[at]
    if (at === undefined || known === undefined) {
      after.push(value)
      index.added()
      touched.add(value)
      continue
    }
    const joined = join(attribute, known, value)
    if (joined === known) continue
    after[at] = joined
    touched.delete(known)
    touched.add(joined)
  }
  return { elements: after, touched }
}

/** Each value of a list once. Throws invalidValue if more than one is primary. */
export const distinctElements = (attribute: SchemaAttribute, values: readonly JsonValue[]): JsonValue[] =>
  joinElements(attribute, [], values, 'same').elements

function join(attribute: SchemaAttribute, known: JsonValue, value: JsonValue): JsonValue {
  if (!isJsonObject(known) || !isJsonObject(value) || isReference(attribute)) return known
  const news: Record<string, JsonValue> = {}
  for (const sub of attribute.subAttributes) {
    const part = value[sub.name]
    if (part === undefined || equalBySchema(sub, known[sub.name] ?? null, part)) continue
    if (sub.mutability !== 'immutable' || known[sub.name] === undefined) news[sub.name] = part
  }
  return Object.keys(news).length === 0 ? known : { ...known, ...news }
}

export const isPrimary = (element: JsonValue): element is JsonObject =>
  isJsonObject(element) && element['primary'] === true

/** RFC 7643 2.4: of the values of an attribute at most one is primary. */
function requireOnePrimary(attribute: SchemaAttribute, values: readonly JsonValue[]): void {
  let primaries = 0
  for (const value of values) if (isPrimary(value) && ++primaries > 1) throw twoPrimaries(attribute)
}

export const twoPrimaries = ({ name }: SchemaAttribute) =>
  scimError('invalidValue', `${name}: only one value can be primary. Set primary on one of them.`)
