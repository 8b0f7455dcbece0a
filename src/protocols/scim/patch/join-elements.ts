import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { equalBySchema } from '#protocols/scim/filter/evaluate-filter.ts'
import { ElementIndex, isReference } from '#protocols/scim/patch/element-identity.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export interface Joined {
  readonly elements: JsonValue[]
  /** Those that are new or other than before. */
  readonly touched: ReadonlySet<JsonValue>
}

/**
 * The elements with the given values added. One that is there is not repeated: what the value says beside its identity
 * is taken over, but a reference stays as it is. `covered` lets a value without a type be any of its kind.
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

/** A list as a client sent it whole: each value once. Throws invalidValue when more than one is primary. */
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
