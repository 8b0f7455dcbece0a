import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { cannotChange } from '#protocols/scim/mutability.ts'
import { sameValue } from '#protocols/scim/resource.ts'
import { defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema.ts'

/**
 * A complex value with some of its parts written anew. Where its `value` becomes another, what the service or an address
 * said of the old one goes. Throws mutability when a part that cannot change would.
 */
export function mergeParts(attribute: SchemaAttribute, before: JsonObject, parts: JsonObject): JsonObject {
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
