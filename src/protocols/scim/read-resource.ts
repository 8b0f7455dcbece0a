import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { clientValues, readSingle, readValue } from '#protocols/scim/read-value.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

/**
 * A whole resource as a client sent it (POST, PUT), in the schema's own form. readOnly and unknown attributes are
 * ignored, and so are unknown schema URIs, since clients send them. Throws invalidSyntax or invalidValue.
 */
export function readResource(schema: ResourceSchema, body: JsonValue, limits = clientValues): ScimResource {
  const raw = requireMessage(body)
  const resource: ScimResource = {}
  for (const [name, value] of Object.entries(raw)) {
    const resolved = schema.resolve(name)
    if (resolved === undefined || value === null) continue
    if (resolved.kind === 'attribute') {
      readInto(schema, resource, resolved, value, limits)
      continue
    }
    if (!isJsonObject(value)) throw scimError('invalidValue', `${resolved.schema.id} must be an object.`)
    for (const [inner, part] of Object.entries(value)) {
      const path = inner.includes(':') ? undefined : schema.resolveAttribute(`${resolved.schema.id}:${inner}`)
      if (path !== undefined && part !== null) readInto(schema, resource, path, part, limits)
    }
  }
  for (const ref of schema.attributes()) requireOnePrimary(ref.attribute.name, readAttribute(resource, ref))
  return resource
}

/** Throws invalidValue when a required attribute has no value. */
export function requireAttributes(schema: ResourceSchema, resource: JsonObject): void {
  for (const attribute of schema.core.attributes) {
    const value = resource[attribute.name]
    if (attribute.required && (value === undefined || value === '')) {
      throw scimError('invalidValue', `${attribute.name} is required.`)
    }
  }
}

/** A body that must be an object; its `schemas`, where given, a list of texts. */
export function requireMessage(body: JsonValue): JsonObject {
  if (!isJsonObject(body)) throw scimError('invalidSyntax', 'The body must be a JSON object.')
  const schemas = body['schemas']
  const valid =
    schemas === undefined ||
    schemas === null ||
    (Array.isArray(schemas) && schemas.every((uri: JsonValue) => typeof uri === 'string'))
  if (!valid) throw scimError('invalidSyntax', 'schemas must be a list of URIs.')
  return body
}

function readInto(
  schema: ResourceSchema,
  resource: ScimResource,
  path: AttributePath,
  raw: JsonValue,
  limits: typeof clientValues,
): void {
  const { attribute, sub } = path
  if (attribute.mutability === 'readOnly' || sub?.mutability === 'readOnly') return
  if (sub === undefined) {
    writeAttribute(resource, path, readValue(schema, attribute, raw, limits))
    return
  }
  if (attribute.multiValued) throw scimError('invalidValue', `${attribute.name} must be a list of objects.`)
  const value = readSingle(schema, sub, raw, limits)
  const before = readAttribute(resource, path)
  if (value !== undefined)
    writeAttribute(resource, path, { ...(isJsonObject(before) ? before : {}), [sub.name]: value })
}

/** Throws invalidValue when more than one value is primary (RFC 7643 2.4). */
function requireOnePrimary(name: string, value: JsonValue | undefined): void {
  if (!Array.isArray(value)) return
  const primaries = value.filter((item: JsonValue) => isJsonObject(item) && item['primary'] === true)
  if (primaries.length > 1) throw scimError('invalidValue', `Only one of ${name} can be primary.`)
}
