import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { distinctElements } from '#protocols/scim/patch/join-elements.ts'
import { clientValues, type ReadOptions, readSingle, readValue } from '#protocols/scim/read-value.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'

export { requireAttributes } from '#protocols/scim/required-values.ts'

/**
 * A whole resource as a client sent it (POST, PUT), in the schema's own form. readOnly and unknown attributes are
 * ignored, and so are unknown schema URIs, since clients send them; strictly, only readOnly ones. `unknown` may refuse
 * unknown ones as well. A value given twice is kept once. Throws invalidSyntax or invalidValue.
 */
export function readResource(
  schema: ResourceSchema,
  body: JsonValue,
  options: ReadOptions = clientValues,
): ScimResource {
  const strict = options.strict === true
  const raw = requireMessage(body, strict ? schema.core.id : undefined)
  const listed = strict ? knownSchemas(schema, raw['schemas']) : undefined
  const resource: ScimResource = {}
  for (const [name, value] of Object.entries(raw)) {
    const resolved = schema.resolve(name, strict)
    if (resolved === undefined && strict) throw unknownAttribute(name)
    if (resolved === undefined && value !== null) options.unknown?.(name)
    if (resolved === undefined || value === null) continue
    if (resolved.kind === 'attribute') {
      readInto(schema, resource, resolved, value, options)
      continue
    }
    const { id } = resolved.schema
    if (!isJsonObject(value)) throw scimError('invalidValue', `${id} must be an object.`)
    if (listed?.has(id) === false)
      throw scimError('invalidValue', `schemas must contain ${id}, since the resource has its attributes.`)
    for (const [inner, part] of Object.entries(value)) {
      const path = inner.includes(':') ? undefined : schema.resolveAttribute(`${id}:${inner}`, strict)
      if (path === undefined && strict) throw unknownAttribute(inner)
      if (path === undefined && part !== null) options.unknown?.(inner)
      if (path !== undefined && part !== null) readInto(schema, resource, path, part, options)
    }
  }
  for (const ref of schema.attributes()) {
    if (!ref.attribute.multiValued) continue
    const value = readAttribute(resource, ref)
    if (Array.isArray(value)) writeAttribute(resource, ref, distinctElements(ref.attribute, value))
  }
  return resource
}

/**
 * A body that must be an object; its `schemas`, where given, a list of texts. Where a schema is demanded, the list must
 * be there and name it. Throws invalidSyntax.
 */
export function requireMessage(body: JsonValue, demanded?: string): JsonObject {
  if (!isJsonObject(body)) throw scimError('invalidSyntax', 'The body must be a JSON object.')
  const schemas = body['schemas']
  const list = Array.isArray(schemas) && schemas.every((uri: JsonValue) => typeof uri === 'string')
  if (!list && ((schemas !== undefined && schemas !== null) || demanded !== undefined)) {
    throw scimError('invalidSyntax', 'schemas must be a list of URIs.')
  }
  if (list && demanded !== undefined && !schemas.some((uri: JsonValue) => sameUri(uri, demanded))) {
    throw scimError('invalidSyntax', `schemas must contain ${demanded}.`)
  }
  return body
}

const sameUri = (a: JsonValue, b: string): boolean => typeof a === 'string' && a.toLowerCase() === b.toLowerCase()

/** The ids of the schemas that a body names. Throws invalidValue for one that the resource does not have. */
function knownSchemas(schema: ResourceSchema, uris: JsonValue | undefined): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const uri of Array.isArray(uris) ? uris : []) {
    const text = typeof uri === 'string' ? uri : ''
    const resolved = schema.resolve(text, true)
    if (resolved?.kind !== 'schema')
      throw scimError('invalidValue', `schemas: ${quoted(text)} is unknown. /Schemas lists those that are known.`)
    ids.add(resolved.schema.id)
  }
  return ids
}

function readInto(
  schema: ResourceSchema,
  resource: ScimResource,
  path: AttributePath,
  raw: JsonValue,
  options: ReadOptions,
): void {
  const { attribute, sub } = path
  if (attribute.mutability === 'readOnly' || sub?.mutability === 'readOnly') return
  if (sub === undefined) {
    writeAttribute(resource, path, readValue(schema, attribute, raw, options))
    return
  }
  if (attribute.multiValued) throw scimError('invalidValue', `${attribute.name} must be a list of objects.`)
  const value = readSingle(schema, sub, raw, options)
  const before = readAttribute(resource, path)
  if (value !== undefined)
    writeAttribute(resource, path, { ...(isJsonObject(before) ? before : {}), [sub.name]: value })
}

const unknownAttribute = (name: string) =>
  scimError(
    'invalidSyntax',
    `The resource has no attribute ${quoted(name)}. Check the name, and the schema in /Schemas.`,
  )
