import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { cannotChange } from '#protocols/scim/mutability.ts'
import { elementFromFilter } from '#protocols/scim/patch/element-from-filter.ts'
import { identityOf, meantBy } from '#protocols/scim/patch/element-identity.ts'
import { isPrimary, joinElements, twoPrimaries } from '#protocols/scim/patch/join-elements.ts'
import { mergeParts } from '#protocols/scim/patch/merge-parts.ts'
import type { PatchOperation, PatchTarget } from '#protocols/scim/patch/patch-operation.ts'
import { maxValues } from '#protocols/scim/read-value.ts'
import { isUnassigned } from '#protocols/scim/resource.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export interface ApplyOptions {
  /** How many values a multi-valued attribute may come to have. */
  readonly maxValues?: number
  /** A replace whose filter picks nothing fails even where it names a sub-attribute (RFC 7644 3.5.2.3). */
  readonly strict?: boolean
}

/** The elements of a multi-valued attribute after one operation. */
export function applyToElements(
  operation: PatchOperation,
  elements: readonly JsonValue[],
  options: ApplyOptions = {},
): readonly JsonValue[] {
  const { attribute } = operation.target
  const most = options.maxValues ?? maxValues
  const after =
    operation.op === 'remove' ? removed(operation, elements, options) : written(operation, elements, options)
  if (after.length > most && after.length > elements.length) {
    throw scimError('invalidValue', `${attribute.name} would have more than ${most} values.`)
  }
  return after
}

type Removal = PatchOperation & { op: 'remove' }
type Writing = PatchOperation & { op: 'add' | 'replace' }

function removed(operation: Removal, elements: readonly JsonValue[], { strict }: ApplyOptions): readonly JsonValue[] {
  const { target, values, replaces } = operation
  const { attribute, filter, sub } = target
  if (values !== undefined) {
    const meant = meantBy(attribute, values, elements.length)
    return elements.filter((element) => !meant(element))
  }
  const picked = picker(filter)
  const mustPick = replaces === true && filter !== undefined && (sub === undefined || strict === true)
  if (mustPick && !elements.some(picked)) throw nothingPicked(attribute)
  if (sub === undefined) return elements.filter((element) => !picked(element))
  const rests = elements.flatMap((element) => {
    if (!picked(element) || !isJsonObject(element) || element[sub.name] === undefined) return [element]
    if (sub.mutability === 'immutable') throw cannotChange(sub)
    const rest = Object.fromEntries(Object.entries(element).filter(([name]) => name !== sub.name))
    // What is left of an element without its value says nothing.
    if (sub.name === 'value' || isUnassigned(rest)) return []
    if (sub.required)
      throw scimError('mutability', `${sub.name} is required and cannot be removed. Replace it instead.`)
    return [rest]
  })
  return distinct(attribute, rests)
}

function written(operation: Writing, elements: readonly JsonValue[], options: ApplyOptions): readonly JsonValue[] {
  const { target, op, value } = operation
  const { attribute, filter, sub } = target
  if (filter === undefined && sub === undefined) {
    const given = Array.isArray(value) ? value : [value as JsonValue]
    const joined =
      op === 'replace'
        ? joinElements(attribute, [], given, 'same')
        : joinElements(attribute, elements, given, 'covered')
    return onePrimary(attribute, joined.elements, joined.touched)
  }
  const change = changeOf(target, value)
  const picked = picker(filter)
  const touched = new Set<JsonValue>()
  const after = elements.map((element) => {
    if (!picked(element)) return element
    const changed = change(element)
    touched.add(changed)
    return changed
  })
  if (touched.size > 0) return onePrimary(attribute, distinct(attribute, after, touched), touched)
  const created = change(template(target, op, options))
  const joined = joinElements(attribute, elements, [created], 'covered')
  return onePrimary(attribute, joined.elements, joined.touched)
}

/** What becomes of a picked element, or of the beginning of a new one. */
function changeOf({ attribute, sub }: PatchTarget, value: JsonValue): (element: JsonValue) => JsonValue {
  if (attribute.type !== 'complex') return () => value
  const part = sub === undefined ? objectOf(value) : { [sub.name]: value }
  return (element) => mergeParts(attribute, objectOf(element), part)
}

/**
 * What a new element starts from where none was picked. A `replace` of whole elements must find one (RFC 7644 3.5.2.3);
 * of a sub-attribute it creates, as an `add` does, since that is how clients write the first value.
 */
function template(
  { filter, sub, attribute }: PatchTarget,
  op: 'add' | 'replace',
  { strict }: ApplyOptions,
): JsonObject {
  if (filter === undefined) return {}
  const mustExist = op === 'replace' && (sub === undefined || strict === true)
  const element = mustExist ? undefined : elementFromFilter(filter)
  if (element === undefined) throw nothingPicked(attribute)
  // The operation may say otherwise of what the filter looked for.
  return Object.fromEntries(Object.entries(element).filter(([name]) => name !== sub?.name))
}

const nothingPicked = ({ name }: SchemaAttribute) =>
  scimError('noTarget', `${name}: no value matches the filter of the path. Read the resource, or use "add".`)

/** A change can make a value the same as another one; the first stands for both, or the one just made primary. */
function distinct(
  attribute: SchemaAttribute,
  elements: readonly JsonValue[],
  touched: ReadonlySet<JsonValue> = new Set(),
): readonly JsonValue[] {
  const keys = elements.map((element) => identityOf(attribute, element))
  const kept = new Map<string, JsonValue>()
  elements.forEach((element, i) => {
    const key = keys[i] ?? ''
    if (!kept.has(key) || (touched.has(element) && isPrimary(element))) kept.set(key, element)
  })
  return kept.size === elements.length ? elements : elements.filter((element, i) => kept.get(keys[i] ?? '') === element)
}

/** A value that an operation just made primary takes that from the others; two at once are a contradiction. */
function onePrimary(
  attribute: SchemaAttribute,
  elements: readonly JsonValue[],
  fresh: ReadonlySet<JsonValue>,
): readonly JsonValue[] {
  const primaries = elements.filter((element) => isPrimary(element) && fresh.has(element))
  if (primaries.length === 0) return elements
  if (primaries.length > 1) throw twoPrimaries(attribute)
  if (!elements.some((element) => isPrimary(element) && !fresh.has(element))) return elements
  const demoted = elements.map((element) =>
    isPrimary(element) && !fresh.has(element) ? { ...element, primary: false } : element,
  )
  return distinct(attribute, demoted, fresh)
}

const picker =
  (filter: ScimFilter | undefined) =>
  (element: JsonValue): boolean =>
    filter === undefined || evaluateFilter(filter, isJsonObject(element) ? element : { value: element })

const objectOf = (value: JsonValue): JsonObject => (isJsonObject(value) ? value : {})
