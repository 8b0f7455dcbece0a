import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { AttributePath, AttributeRef } from './resource-schema.ts'

/** A SCIM resource under construction. Its keys come from schema tables, never from input. */
export type ScimResource = Record<string, JsonValue>

export function resourceTypeOf({ meta }: JsonObject): string | undefined {
  const type = isJsonObject(meta) ? meta['resourceType'] : undefined
  return typeof type === 'string' ? type : undefined
}

export function readAttribute(resource: JsonObject, ref: AttributeRef): JsonValue | undefined {
  if (ref.extension === undefined) return resource[ref.attribute.name]
  const extension = resource[ref.extension]
  return isJsonObject(extension) ? extension[ref.attribute.name] : undefined
}

/** The attribute, or the part of a single complex one. */
export function readPath(resource: JsonObject, path: AttributePath): JsonValue | undefined {
  const value = readAttribute(resource, path)
  if (path.sub === undefined) return value
  return isJsonObject(value) ? value[path.sub.name] : undefined
}

/** Undefined, an empty list and an empty object remove the attribute; all three mean "unassigned" (RFC 7643 2.5). */
export function writeAttribute(resource: ScimResource, ref: AttributeRef, value: JsonValue | undefined): void {
  if (ref.extension === undefined) {
    put(resource, ref.attribute.name, value)
    return
  }
  const before = resource[ref.extension]
  const extension: ScimResource = isJsonObject(before) ? { ...before } : {}
  put(extension, ref.attribute.name, value)
  put(resource, ref.extension, extension)
}

/** The object of this name, created if absent. The resource is under construction, so it may be changed in place. */
export function objectIn(resource: ScimResource, name: string): ScimResource {
  const present = resource[name]
  if (isJsonObject(present)) return present as ScimResource
  const made: ScimResource = {}
  resource[name] = made
  return made
}

function put(object: ScimResource, name: string, value: JsonValue | undefined): void {
  if (value === undefined || isUnassigned(value)) delete object[name]
  else object[name] = value
}

export function isUnassigned(value: JsonValue): boolean {
  if (value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return isJsonObject(value) && Object.keys(value).length === 0
}

/** Equal JSON; the order of keys does not count. The schemas limit the depth, and so the recursion. */
export function sameValue(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => sameValue(item, b[i]))
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => sameValue(a[name], b[name]))
}
