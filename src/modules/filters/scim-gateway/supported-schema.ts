import { type AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'
import type { PreparedMapping } from '#sdk/mapping.ts'

/**
 * The schema that tells exactly what this gateway keeps: attributes it neither reads nor shows are not listed, those it
 * only shows are readOnly, those it only takes are writeOnly.
 */
export function supportedUserSchema(
  full: ResourceSchema,
  shown: Iterable<AttributePath>,
  toInternal: PreparedMapping,
): ResourceSchema {
  const readable = new Set<SchemaAttribute>(Array.from(shown, (path) => path.attribute))
  const writable = new Set<SchemaAttribute>()
  for (const { attribute } of toInternal.reads) {
    const path = full.resolveAttribute(attribute)
    if (path !== undefined) writable.add(path.attribute)
  }
  const login = full.resolveAttribute('userName')?.attribute
  const view = (attribute: SchemaAttribute): SchemaAttribute[] => {
    if (attribute === login) return [attribute]
    const reads = readable.has(attribute)
    const writes = writable.has(attribute) || (reads && toInternal.opaque)
    if (!reads && !writes) return []
    if (attribute.mutability === 'readOnly' || (reads && writes)) return [attribute]
    return [reads ? readOnly(attribute) : { ...attribute, mutability: 'writeOnly', returned: 'never' }]
  }
  const cut = (schema: Schema): Schema => ({ ...schema, attributes: schema.attributes.flatMap(view) })
  return new ResourceSchema(
    cut(full.core),
    full.extensions.map(cut).filter((extension) => extension.attributes.length > 0),
  )
}

const readOnly = (attribute: SchemaAttribute): SchemaAttribute => ({
  ...attribute,
  mutability: 'readOnly',
  subAttributes: attribute.subAttributes.map(readOnly),
})
