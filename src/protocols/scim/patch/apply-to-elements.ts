import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { equalBySchema, evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { elementFromFilter } from '#protocols/scim/patch/element-from-filter.ts'
import type { PatchOperation, PatchTarget } from '#protocols/scim/patch/patch-operation.ts'
import { maxValues } from '#protocols/scim/read-value.ts'
import { isUnassigned, sameValue } from '#protocols/scim/resource.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

/** The elements of a multi-valued attribute after one operation. */
export function applyToElements(operation: PatchOperation, elements: readonly JsonValue[]): JsonValue[] {
  const { attribute } = operation.target
  const after = operation.op === 'remove' ? removed(operation, elements) : written(operation, elements)
  if (after.length > maxValues && after.length > elements.length) {
    throw scimError('invalidValue', `${attribute.name} would have more than ${maxValues} values.`)
  }
  return after
}

type Removal = PatchOperation & { op: 'remove' }
type Writing = PatchOperation & { op: 'add' | 'replace' }

function removed({ target, values }: Removal, elements: readonly JsonValue[]): JsonValue[] {
  const { attribute, filter, sub } = target
  if (values !== undefined) {
    return elements.filter((element) => !values.some((value) => covers(attribute, element, value)))
  }
  const picked = picker(filter)
  if (sub === undefined) return elements.filter((element) => !picked(element))
  return elements.flatMap((element) => {
    if (!picked(element) || !isJsonObject(element) || element[sub.name] === undefined) return [element]
    if (sub.mutability === 'immutable') throw immutable(sub)
    const rest = Object.fromEntries(Object.entries(element).filter(([name]) => name !== sub.name))
    // What is left of an element without its value says nothing.
    return sub.name === 'value' || isUnassigned(rest) ? [] : [rest]
  })
}

function written(operation: Writing, elements: readonly JsonValue[]): JsonValue[] {
  const { target, op, value } = operation
  const { attribute, filter, sub } = target
  if (filter === undefined && sub === undefined) {
    const given = Array.isArray(value) ? value : [value as JsonValue]
    if (op === 'replace') return onePrimary(attribute, unique(attribute, given), new Set(given))
    const fresh = unique(attribute, given).filter((one) => !elements.some((element) => covers(attribute, element, one)))
    return onePrimary(attribute, [...elements, ...fresh], new Set(fresh))
  }
  const part: JsonObject = sub === undefined ? objectOf(value) : { [sub.name]: value }
  const picked = picker(filter)
  const touched = new Set<JsonValue>()
  const after = elements.map((element) => {
    if (!picked(element) || !isJsonObject(element)) return element
    const merged = merge(attribute, element, part)
    touched.add(merged)
    return merged
  })
  if (touched.size > 0) return onePrimary(attribute, after, touched)
  const created = { ...template(target, op), ...part }
  return onePrimary(attribute, [...elements, created], new Set([created]))
}

/**
 * What a new element starts from where none was picked. A `replace` of whole elements must find one (RFC 7644 3.5.2.3);
 * of a sub-attribute it creates, as an `add` does, since that is how clients write the first value.
 */
function template({ filter, sub, attribute }: PatchTarget, op: 'add' | 'replace'): JsonObject {
  if (filter === undefined) return {}
  const element = op === 'replace' && sub === undefined ? undefined : elementFromFilter(filter)
  if (element === undefined) throw scimError('noTarget', `No value of ${attribute.name} matches the path's filter.`)
  return element
}

function merge(attribute: SchemaAttribute, element: JsonObject, part: JsonObject): JsonObject {
  for (const sub of attribute.subAttributes) {
    const before = element[sub.name]
    const after = part[sub.name]
    if (sub.mutability !== 'immutable' || before === undefined || after === undefined) continue
    if (!sameValue(before, after)) throw immutable(sub)
  }
  return { ...element, ...part }
}

/** A value that an operation just made primary takes that from the others; two at once are a contradiction. */
function onePrimary(attribute: SchemaAttribute, elements: JsonValue[], fresh: ReadonlySet<JsonValue>): JsonValue[] {
  const primaries = elements.filter((element) => isPrimary(element) && fresh.has(element))
  if (primaries.length === 0) return elements
  if (primaries.length > 1) throw scimError('invalidValue', `Only one of ${attribute.name} can be primary.`)
  return elements.map((element) =>
    isPrimary(element) && isJsonObject(element) && !fresh.has(element) ? { ...element, primary: false } : element,
  )
}

const isPrimary = (element: JsonValue): boolean => isJsonObject(element) && element['primary'] === true

function unique(attribute: SchemaAttribute, values: readonly JsonValue[]): JsonValue[] {
  const kept: JsonValue[] = []
  for (const value of values) if (!kept.some((one) => covers(attribute, one, value))) kept.push(value)
  return kept
}

/** Whether the element has everything the value says; a member is known by its `value` alone, whatever its display. */
function covers(attribute: SchemaAttribute, element: JsonValue, value: JsonValue): boolean {
  if (!isJsonObject(value) || !isJsonObject(element)) return equalBySchema(attribute, element, value)
  return attribute.subAttributes.every((sub) => {
    const wanted = value[sub.name]
    return wanted === undefined || equalBySchema(sub, element[sub.name] ?? null, wanted)
  })
}

const picker =
  (filter: ScimFilter | undefined) =>
  (element: JsonValue): boolean =>
    filter === undefined || (isJsonObject(element) && evaluateFilter(filter, element))

const objectOf = (value: JsonValue): JsonObject => (isJsonObject(value) ? value : {})

const immutable = (sub: SchemaAttribute) => scimError('mutability', `${sub.name} cannot be changed once it is set.`)
