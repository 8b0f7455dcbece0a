import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { elementMatcher, identityOf, isPrimary, joinElements, twoPrimaries } from '#protocols/scim/filter/elements.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { conjuncts, type ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { PatchOperation, PatchTarget } from '#protocols/scim/patch/parse-patch.ts'
import { maxValues } from '#protocols/scim/read-resource.ts'
import { cannotChange, requireImmutable, requireKept } from '#protocols/scim/resource-rules.ts'
import {
  isUnassigned,
  readAttribute,
  type ScimResource,
  sameValue,
  writeAttribute,
} from '#protocols/scim/schema/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'

/** The most values that all operations together may visit; each visits every value of its attribute. */
const maxVisits = 2_000_000

/**
 * Applies all operations to a copy. Throws mutability, noTarget or invalidValue. Immutable and required attributes are
 * checked in the outcome, not after each operation.
 */
export function applyPatch(
  schema: ResourceSchema,
  before: JsonObject,
  operations: readonly PatchOperation[],
  options: ApplyOptions = {},
): ScimResource {
  const resource: ScimResource = { ...before }
  let visits = 0
  for (const operation of operations) {
    visits += applyOperation(resource, operation, options)
    if (visits > maxVisits)
      throw scimError('invalidValue', 'Operations: too many for lists of this length. Split the request.')
  }
  requireImmutable(schema, before, resource)
  requireKept(schema, before, resource)
  for (const { op, target } of operations) if (op !== 'remove') requireContent(target, before, resource)
  return resource
}

/** Parts that say nothing without another one. */
const descriptiveParts: ReadonlySet<string> = new Set(['type', 'primary'])

/**
 * Throws noTarget if the operation created an element, and none gave it content: targets keep no such element. This is
 * judged by the outcome, since Entra creates an element by several operations, one for each part.
 */
function requireContent({ attribute, filter, sub, ...ref }: PatchTarget, before: JsonObject, after: JsonObject): void {
  if (filter === undefined || sub === undefined || !descriptiveParts.has(sub.name)) return
  const [was, is] = [before, after].map((resource) => {
    const elements = readAttribute(resource, { ...ref, attribute })
    return Array.isArray(elements) ? elements : []
  })
  const isBare = (element: JsonValue): boolean =>
    isJsonObject(element) && Object.keys(element).every((name) => descriptiveParts.has(name))
  if (was?.some(picker(filter)) === true || is?.some((one) => isBare(one) && was?.includes(one) !== true) !== true)
    return
  const content = attribute.subAttributes.find(({ name }) => !descriptiveParts.has(name))?.name
  throw scimError(
    'noTarget',
    `${attribute.name}: no value matches the filter of the path, and "${sub.name}" alone creates none. Send its "${content}" too.`,
  )
}

/** The top-level attributes whose value differs. */
export function changedAttributes(schema: ResourceSchema, before: JsonObject, after: JsonObject): AttributeRef[] {
  return Array.from(schema.attributes()).filter(
    (ref) => !sameValue(readAttribute(before, ref), readAttribute(after, ref)),
  )
}

/** Values are never changed in place, so the values of `before` stay unchanged. */
function applyOperation(resource: ScimResource, operation: PatchOperation, options: ApplyOptions): number {
  const { target } = operation
  const { attribute, sub } = target
  const present = readAttribute(resource, target)
  if (attribute.multiValued) {
    const elements = Array.isArray(present) ? present : []
    const after = applyToElements(operation, elements, options)
    writeAttribute(resource, target, after)
    return after.length
  }
  writeAttribute(resource, target, valueAfter(operation, attribute, sub, present))
  return 1
}

function valueAfter(
  operation: PatchOperation,
  attribute: SchemaAttribute,
  sub: SchemaAttribute | undefined,
  present: JsonValue | undefined,
): JsonValue | undefined {
  if (operation.op === 'remove') return sub === undefined ? undefined : without(present, sub)
  const { value } = operation
  if (sub !== undefined) return mergeParts(attribute, objectOf(present), { [sub.name]: value })
  return isJsonObject(value) ? mergeParts(attribute, objectOf(present), value) : value
}

function without(value: JsonValue | undefined, sub: SchemaAttribute): JsonObject {
  const { [sub.name]: part, ...rest } = objectOf(value)
  if (part !== undefined && sub.required) {
    throw scimError('mutability', `${sub.name} is required and cannot be removed. Replace it instead.`)
  }
  return rest
}

interface ApplyOptions {
  /** The most values of a multi-valued attribute. */
  readonly maxValues?: number
  /** A replace whose filter matches nothing fails even with a sub-attribute (RFC 7644 3.5.2.3). */
  readonly strict?: boolean
}

/** The elements of a multi-valued attribute after one operation. */
function applyToElements(
  operation: PatchOperation,
  elements: readonly JsonValue[],
  options: ApplyOptions = {},
): readonly JsonValue[] {
  const { attribute } = operation.target
  const most = options.maxValues ?? maxValues
  const after =
    operation.op === 'remove' ? removed(operation, elements, options) : written(operation, elements, options)
  if (after.length > most && after.length > elements.length) {
    throw scimError('invalidValue', `${attribute.name} would have more than ${most} values. Remove some first.`)
  }
  return after
}

type Removal = PatchOperation & { op: 'remove' }
type Writing = PatchOperation & { op: 'add' | 'replace' }

function removed(operation: Removal, elements: readonly JsonValue[], { strict }: ApplyOptions): readonly JsonValue[] {
  const { target, values, replaces } = operation
  const { attribute, filter, sub } = target
  if (values !== undefined) {
    const isNamed = elementMatcher(attribute, values, elements.length)
    return elements.filter((element) => !isNamed(element))
  }
  const picked = picker(filter)
  const mustPick = replaces === true && filter !== undefined && (sub === undefined || strict === true)
  if (mustPick && !elements.some(picked)) throw nothingPicked(attribute)
  if (sub === undefined) return elements.filter((element) => !picked(element))
  const rests = elements.flatMap((element) => {
    if (!picked(element) || !isJsonObject(element) || element[sub.name] === undefined) return [element]
    if (sub.mutability === 'immutable') throw cannotChange(sub)
    const rest = Object.fromEntries(Object.entries(element).filter(([name]) => name !== sub.name))
    // An element without its value has no use.
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

/** The change of a picked element, or of the template of a new one. */
function changeOf({ attribute, sub }: PatchTarget, value: JsonValue): (element: JsonValue) => JsonValue {
  if (attribute.type !== 'complex') return () => value
  const part = sub === undefined ? objectOf(value) : { [sub.name]: value }
  return (element) => mergeParts(attribute, objectOf(element), part)
}

/**
 * The start of a new element if none was picked. A `replace` of whole elements must find one (RFC 7644 3.5.2.3). A `replace`
 * of a sub-attribute creates one, like an `add`, since clients write the first value like this.
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
  // The operation sets this part itself.
  return Object.fromEntries(Object.entries(element).filter(([name]) => name !== sub?.name))
}

const nothingPicked = ({ name }: SchemaAttribute) =>
  scimError('noTarget', `${name}: no value matches the filter of the path. Read the resource, or use "add".`)

/** A change can make two values equal; the first stays, or the one that just became primary. */
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

/** A value that becomes primary replaces the former primary value; two at once are an error. */
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

/**
 * The element that a filter describes: `type eq "work" and primary eq true` is `{type: "work", primary: true}`.
 * Undefined if it does not describe exactly one, as with `or` or `co`, or one that clients can't create.
 */
function elementFromFilter(filter: ScimFilter): Record<string, JsonValue> | undefined {
  const element: Record<string, JsonValue> = {}
  for (const part of conjuncts(filter)) {
    if (part.kind !== 'compare' || part.operator !== 'eq' || part.value === null) return undefined
    const { name, mutability } = part.path.attribute
    if (mutability === 'readOnly') return undefined
    if (Object.hasOwn(element, name) && element[name] !== part.value) return undefined
    element[name] = part.value
  }
  return element
}

/**
 * A complex value with some of its parts replaced. If its `value` changes, readOnly parts and the address of the old one
 * are dropped. Throws mutability if an immutable part would change.
 */
function mergeParts(attribute: SchemaAttribute, before: JsonObject, parts: JsonObject): JsonObject {
  const value = defaultSubAttribute(attribute)?.name
  const isOther = value !== undefined && parts[value] !== undefined && !sameValue(before[value], parts[value])
  const merged: Record<string, JsonValue> = {}
  for (const sub of attribute.subAttributes) {
    const { name, mutability } = sub
    const present = before[name]
    const part = parts[name]
    if (part !== undefined) {
      if (mutability === 'immutable' && present !== undefined && !sameValue(present, part)) throw cannotChange(sub)
      merged[name] = part
    } else if (present !== undefined && !(isOther && (mutability === 'readOnly' || name === '$ref'))) {
      merged[name] = present
    }
  }
  return merged
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})
