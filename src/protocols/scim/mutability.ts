import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute, sameValue } from '#protocols/scim/resource.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export const cannotChange = ({ name }: SchemaAttribute) =>
  scimError('mutability', `${name} is immutable: it cannot be changed once it is set. Leave it as it is.`)

/**
 * Throws mutability when an immutable attribute that had a value has another one, or none. The parts of a single complex
 * value count while the value is there; taken away as a whole it takes them along.
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
