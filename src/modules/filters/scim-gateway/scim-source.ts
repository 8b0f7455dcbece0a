import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'

/** A SCIM resource as mappings read it: by any spelling of an attribute, as texts or, where it is complex, as JSON. */
export function scimSource(schema: ResourceSchema, resource: JsonObject, login: string): MappingSource {
  const find = (name: string): JsonValue | undefined => {
    const path = schema.resolveAttribute(name)
    return path === undefined ? undefined : valueAt(resource, path)
  }
  return {
    userID: login,
    groups: [],
    values: (name) => textsOf(find(name)),
    json: find,
    names: () => Object.keys(resource),
  }
}

function valueAt(resource: JsonObject, path: AttributePath): JsonValue | undefined {
  const value = readAttribute(resource, path)
  const { sub } = path
  if (sub === undefined || value === undefined) return value
  if (Array.isArray(value))
    return value.flatMap((item: JsonValue) => (isJsonObject(item) ? (item[sub.name] ?? []) : []))
  return isJsonObject(value) ? value[sub.name] : undefined
}

/** A complex value stands for its `value`. */
function textsOf(value: JsonValue | undefined): readonly string[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value.flatMap(textsOf)
  if (isJsonObject(value)) return textsOf(value['value'])
  return [String(value)]
}
