import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'

/**
 * The outcome of a PUT (RFC 7644 3.5.1): attributes that the client leaves out are cleared, except readOnly and immutable
 * ones. `sent` comes from `readResource`. Throws mutability if an immutable value changes.
 */
export function replaceResource(schema: ResourceSchema, before: JsonObject, sent: JsonObject): ScimResource {
  const after: ScimResource = { ...sent }
  for (const ref of schema.attributes()) {
    const { attribute } = ref
    const present = readAttribute(before, ref)
    if (present === undefined) continue
    const value = readAttribute(after, ref)
    if (attribute.mutability === 'readOnly') writeAttribute(after, ref, present)
    else if (attribute.mutability === 'immutable' && value === undefined) writeAttribute(after, ref, present)
    else if (isJsonObject(value)) writeAttribute(after, ref, withReadOnlyParts(attribute, present, value))
  }
  requireImmutable(schema, before, after)
  return after
}

/** Keeps the readOnly parts, which describe the value, unless the value changes. */
function withReadOnlyParts(attribute: SchemaAttribute, before: JsonValue, after: JsonObject): JsonObject {
  const value = defaultSubAttribute(attribute)?.name
  if (!isJsonObject(before) || (value !== undefined && !sameValue(before[value], after[value]))) return after
  const kept: Record<string, JsonValue> = {}
  for (const { name, mutability } of attribute.subAttributes) {
    const part = before[name]
    if (mutability === 'readOnly' && part !== undefined) kept[name] = part
  }
  return { ...kept, ...after }
}

export const cannotChange = ({ name }: SchemaAttribute) =>
  scimError('mutability', `${name} is immutable: it cannot be changed once it is set. Leave it as it is.`)

/**
 * Throws mutability if an immutable attribute loses or changes its value. This applies to the parts of a single complex
 * value, unless the whole value is removed.
 */
export function requireImmutable(schema: ResourceSchema, before: JsonObject, after: JsonObject): void {
  for (const ref of schema.attributes()) {
    const { attribute } = ref
    const present = readAttribute(before, ref)
    if (present === undefined) continue
    const value = readAttribute(after, ref)
    if (attribute.mutability === 'immutable' && !sameValue(present, value)) throw cannotChange(attribute)
    if (isJsonObject(value)) requireImmutableParts(attribute, present, value)
  }
}

function requireImmutableParts(attribute: SchemaAttribute, before: JsonValue, after: JsonObject): void {
  if (!isJsonObject(before)) return
  for (const sub of attribute.subAttributes) {
    if (sub.mutability !== 'immutable' || before[sub.name] === undefined) continue
    if (!sameValue(before[sub.name], after[sub.name])) throw cannotChange(sub)
  }
}

/**
 * Throws invalidValue if a required attribute has no value. Attributes of an extension are required if the extension is
 * required or present, sub-attributes if their attribute has a value.
 */
export function requireAttributes(schema: ResourceSchema, resource: JsonObject): void {
  for (const extension of schema.extensions) {
    if (extension.required === true && resource[extension.id] === undefined) {
      throw scimError('invalidValue', `${extension.id} is required. Send its attributes.`)
    }
  }
  for (const ref of schema.attributes()) {
    const value = readAttribute(resource, ref)
    if (isOwed(ref.attribute) && isMissing(value) && isApplied(resource, ref)) throw required(ref.attribute)
    requireParts(ref.attribute, value, undefined)
  }
}

/**
 * The same after a change, with mutability for a value that was removed (RFC 7644 3.5.2.2). A value that was already absent,
 * as after a partial read, was not removed by this request.
 */
export function requireKept(schema: ResourceSchema, before: JsonObject, after: JsonObject): void {
  for (const { id, required: needed } of schema.extensions) {
    if (needed === true && before[id] !== undefined && after[id] === undefined) throw removed(id)
  }
  for (const ref of schema.attributes()) {
    const present = readAttribute(before, ref)
    const value = readAttribute(after, ref)
    if (present === value) continue
    if (isOwed(ref.attribute) && isMissing(value) && (present !== undefined || value !== undefined)) {
      if (isApplied(after, ref)) throw removed(ref.attribute.name)
    }
    requireParts(ref.attribute, value, present)
  }
  for (const ref of schema.attributes()) {
    const { extension, attribute } = ref
    if (extension === undefined || !isOwed(attribute) || before[extension] !== undefined) continue
    if (after[extension] !== undefined && isMissing(readAttribute(after, ref))) throw required(attribute)
  }
}

/** Checks only values that are new. */
function requireParts(attribute: SchemaAttribute, value: JsonValue | undefined, before: JsonValue | undefined): void {
  if (!attribute.subAttributes.some(isOwed)) return
  const known = new Set<JsonValue>(listOf(before))
  for (const element of listOf(value)) {
    if (known.has(element) || !isJsonObject(element)) continue
    for (const sub of attribute.subAttributes) {
      if (isOwed(sub) && isMissing(element[sub.name])) throw required(sub)
    }
  }
}

/** Clients cannot send attributes that only the service sets. */
const isOwed = ({ required: needed, mutability }: SchemaAttribute): boolean => needed && mutability !== 'readOnly'

const isApplied = (resource: JsonObject, { extension }: AttributeRef): boolean =>
  extension === undefined || resource[extension] !== undefined

const isMissing = (value: JsonValue | undefined): boolean => value === undefined || value === ''

const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value as JsonValue]

const required = ({ name }: SchemaAttribute) => scimError('invalidValue', `${name} is required. Send a value.`)

const removed = (name: string) =>
  scimError('mutability', `${name} is required and cannot be removed. Replace it instead.`)
