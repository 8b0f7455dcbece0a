import type { ReportProblem } from '#protocols/scim/read-schema.ts'
import { maxSchemaAttributes } from '#protocols/scim/read-schema.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema } from '#protocols/scim/schema.ts'
import { commonAttributes } from '#protocols/scim/schemas/common-attributes.ts'

export const maxExtensions = 50

/**
 * The resource type with schemas of its owner's: one that has the id of the core schema, or of an extension that is
 * there, adds its attributes to that; any other is a new extension. Names that are taken are reported, with the place
 * of the schema in the list first in the path, and left out.
 */
export function extendResourceSchema(
  base: ResourceSchema,
  schemas: readonly Schema[],
  report: ReportProblem,
): ResourceSchema {
  let { core } = base
  const extensions = [...base.extensions]
  schemas.forEach((schema, i) => {
    const extend = (known: Schema, reserved: readonly { name: string }[]): Schema =>
      extended(known, schema, reserved, (path, message) => report([i, ...path], message))
    const at = extensions.findIndex(({ id }) => sameUri(id, schema.id))
    const present = extensions[at]
    if (sameUri(core.id, schema.id)) core = extend(core, commonAttributes)
    else if (present !== undefined) extensions[at] = extend(present, [])
    else if (extensions.length >= maxExtensions) report([i], `there are more than ${maxExtensions} extensions`)
    else extensions.push(schema)
  })
  return new ResourceSchema(core, extensions)
}

function extended(known: Schema, more: Schema, reserved: readonly { name: string }[], report: ReportProblem): Schema {
  const taken = new Set([...known.attributes, ...reserved].map(({ name }) => name.toLowerCase()))
  const fresh = more.attributes.filter(({ name }, i) => {
    if (!taken.has(name.toLowerCase())) return true
    report(['attributes', i, 'name'], `${known.id} already has an attribute "${name}"`)
    return false
  })
  const attributes = [...known.attributes, ...fresh]
  if (attributes.length > maxSchemaAttributes) {
    report(['attributes'], `${known.id} would have more than ${maxSchemaAttributes} attributes`)
    return known
  }
  return { ...known, attributes, ...(more.required === true ? { required: true } : {}) }
}

const sameUri = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
