import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { requireImmutable } from '#protocols/scim/mutability.ts'
import { type ApplyOptions, applyToElements } from '#protocols/scim/patch/apply-to-elements.ts'
import { mergeParts } from '#protocols/scim/patch/merge-parts.ts'
import type { PatchOperation } from '#protocols/scim/patch/patch-operation.ts'
import { requireKept } from '#protocols/scim/required-values.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export interface PatchResult {
  readonly resource: ScimResource
  /** Top-level attributes whose value is another than before. */
  readonly changed: readonly AttributeRef[]
}

/** How many values all operations together may look at; each looks at every value of its attribute. */
const maxVisits = 2_000_000

/**
 * Applies all operations to a copy; the given resource never changes. Throws mutability, noTarget or invalidValue,
 * and then nothing was done. Immutable and required attributes are judged by the outcome, not on the way.
 */
export function applyPatch(
  schema: ResourceSchema,
  before: JsonObject,
  operations: readonly PatchOperation[],
  options: ApplyOptions = {},
): PatchResult {
  const resource: ScimResource = { ...before }
  let visits = 0
  for (const operation of operations) {
    visits += applyOperation(resource, operation, options)
    if (visits > maxVisits)
      throw scimError('invalidValue', 'Operations: too many for lists of this length. Split the request.')
  }
  requireImmutable(schema, before, resource)
  requireKept(schema, before, resource)
  return { resource, changed: changedAttributes(schema, before, resource) }
}

export function changedAttributes(schema: ResourceSchema, before: JsonObject, after: JsonObject): AttributeRef[] {
  return Array.from(schema.attributes()).filter(
    (ref) => !sameValue(readAttribute(before, ref), readAttribute(after, ref)),
  )
}

/** Values are never changed in place: each step writes new ones, so what `before` holds stays as it is. */
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

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})
