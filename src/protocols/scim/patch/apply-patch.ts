import type { JsonObject } from '#kernel/json.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import { applyToElements } from '#protocols/scim/patch/apply-to-elements.ts'
import type { PatchOperation } from '#protocols/scim/patch/patch-operation.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export interface PatchResult {
  readonly resource: ScimResource
  /** Top-level attributes whose value is another than before. */
  readonly changed: readonly AttributeRef[]
}

/**
 * Applies all operations to a copy; the given resource never changes. Throws mutability, noTarget or invalidValue,
 * and then nothing was done.
 */
export function applyPatch(
  schema: ResourceSchema,
  before: JsonObject,
  operations: readonly PatchOperation[],
): PatchResult {
  const resource: ScimResource = { ...before }
  for (const operation of operations) applyOperation(resource, operation)
  for (const attribute of schema.core.attributes) {
    const value = resource[attribute.name]
    if (!attribute.required || (value !== undefined && value !== '')) continue
    // What was never there, as on a partial read, was not removed by this request.
    if (before[attribute.name] === undefined && value === undefined) continue
    throw scimError('mutability', `${attribute.name} is required and cannot be removed.`)
  }
  return { resource, changed: changedAttributes(schema, before, resource) }
}

export function changedAttributes(schema: ResourceSchema, before: JsonObject, after: JsonObject): AttributeRef[] {
  return Array.from(schema.attributes()).filter(
    (ref) => !sameValue(readAttribute(before, ref), readAttribute(after, ref)),
  )
}

/** Values are never changed in place: each step writes new ones, so what `before` holds stays as it is. */
function applyOperation(resource: ScimResource, operation: PatchOperation): void {
  const { target } = operation
  const { attribute, sub } = target
  const present = readAttribute(resource, target)
  if (attribute.multiValued) {
    const elements = Array.isArray(present) ? present : []
    writeAttribute(resource, target, applyToElements(operation, elements))
    return
  }
  requireMutable(sub ?? attribute, sub === undefined ? present : partOf(present, sub), operation)
  if (operation.op === 'remove') {
    writeAttribute(resource, target, sub === undefined ? undefined : without(present, sub))
    return
  }
  const { value } = operation
  if (sub !== undefined) writeAttribute(resource, target, { ...objectOf(present), [sub.name]: value })
  else if (isJsonObject(value)) writeAttribute(resource, target, { ...objectOf(present), ...value })
  else writeAttribute(resource, target, value)
}

/** An immutable attribute takes its first value and keeps it. */
function requireMutable(leaf: SchemaAttribute, present: JsonValue | undefined, operation: PatchOperation): void {
  if (leaf.mutability !== 'immutable' || present === undefined) return
  if (operation.op !== 'remove' && sameValue(present, operation.value)) return
  throw scimError('mutability', `${leaf.name} cannot be changed once it is set.`)
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})

const partOf = (value: JsonValue | undefined, sub: SchemaAttribute): JsonValue | undefined => objectOf(value)[sub.name]

export function without(value: JsonValue | undefined, sub: SchemaAttribute): JsonObject {
  return Object.fromEntries(Object.entries(objectOf(value)).filter(([name]) => name !== sub.name))
}
