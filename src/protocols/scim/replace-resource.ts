import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { requireImmutable } from '#protocols/scim/mutability.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema.ts'

/**
 * What a PUT makes of a resource (RFC 7644 3.5.1): what the client leaves out is cleared, what only the service sets
 * stays, and so does what cannot change. `sent` is what `readResource` gave. Throws mutability when an immutable value is
 * another.
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

/** The service's own parts belong to the value they describe. */
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
