import { pathKey } from '#protocols/scim/path-key.ts'
import { type AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'
import type { PreparedMapping } from '#sdk/mapping.ts'
import { isCore } from './core-attribute.ts'
import type { FilterNames } from './filter-names.ts'
import type { SchemaMapping } from './schema-mapping.ts'

/**
 * The schema that tells exactly what this gateway keeps: attributes it neither reads nor shows are not listed, those it
 * only shows are readOnly, those it only takes are writeOnly. The same holds for each sub-attribute.
 */
export function supportedUserSchema(
  full: ResourceSchema,
  builtIn: SchemaMapping,
  lines: Iterable<AttributePath>,
  toInternal: PreparedMapping,
): ResourceSchema {
  const readable = new Set([...builtIn.shown, ...lines].map(pathKey))
  const writable = new Set(builtIn.taken.map(pathKey))
  for (const { attribute } of toInternal.reads) {
    const path = full.resolveAttribute(attribute)
    if (path !== undefined) writable.add(pathKey(path))
  }
  return cut(full, {
    whole: (path) => isCore(path, 'userName') || (isCore(path, 'groups') && !builtIn.isEmpty),
    reads: (path) => readable.has(pathKey(path)),
    writes: (path) => writable.has(pathKey(path)) || (toInternal.opaque && readable.has(pathKey(path))),
  })
}

/** Parameters of the gateway. */
interface GroupWorkflows {
  readonly groupCreateWorkflow: string | undefined
  readonly groupUpdateWorkflow: string | undefined
  readonly groupWorkflow: string | undefined
}

/**
 * Name and members, what the built-in mapping keeps, and what has an internal name; each as far as there are workflows
 * that change it.
 */
export function supportedGroupSchema(
  full: ResourceSchema,
  builtIn: SchemaMapping,
  names: FilterNames,
  workflows: GroupWorkflows,
): ResourceSchema {
  const { groupCreateWorkflow, groupUpdateWorkflow, groupWorkflow } = workflows
  const given = groupCreateWorkflow === undefined ? 'readOnly' : 'immutable'
  const own = groupUpdateWorkflow === undefined ? given : undefined
  const ofMembers = groupWorkflow === undefined ? 'readOnly' : undefined
  const kept = new Set([...builtIn.shown.map(pathKey), ...names.keys()])
  const isKept = (path: AttributePath): boolean => kept.has(pathKey(path))
  const listed = cut(full, {
    whole: (path) => isCore(path, 'displayName') || isCore(path, 'members'),
    reads: isKept,
    writes: isKept,
  })
  const mutable = (attribute: SchemaAttribute, limit: 'readOnly' | 'immutable' | undefined): SchemaAttribute =>
    limit === undefined || attribute.mutability === 'readOnly' ? attribute : { ...attribute, mutability: limit }
  const core = listed.core.attributes.map((attribute) =>
    attribute.name === 'members' ? mutable(byReference(attribute), ofMembers) : mutable(attribute, own),
  )
  const extensions = listed.extensions.map((schema) => ({
    ...schema,
    attributes: schema.attributes.map((attribute) => mutable(attribute, own)),
  }))
  return new ResourceSchema({ ...listed.core, attributes: core }, extensions)
}

/** Members as the schema of RFC 7643 8.7.1 has them; the name that clients send with a member is not kept. */
const byReference = (members: SchemaAttribute): SchemaAttribute => ({
  ...members,
  subAttributes: members.subAttributes.filter(({ name }) => name !== 'display'),
})

interface Support {
  /** The attribute is listed as the schema has it. */
  readonly whole: (path: AttributePath) => boolean
  readonly reads: (path: AttributePath) => boolean
  readonly writes: (path: AttributePath) => boolean
}

function cut(full: ResourceSchema, support: Support): ResourceSchema {
  const cutSchema = (schema: Schema, extension?: string): Schema => ({
    ...schema,
    attributes: schema.attributes.flatMap((attribute) =>
      view(extension === undefined ? { attribute } : { attribute, extension }, support),
    ),
  })
  return new ResourceSchema(
    cutSchema(full.core),
    full.extensions.map((schema) => cutSchema(schema, schema.id)).filter(({ attributes }) => attributes.length > 0),
  )
}

function view(path: AttributePath, support: Support): SchemaAttribute[] {
  const { attribute } = path
  if (support.whole(path)) return [attribute]
  const reads = support.reads(path)
  const writes = support.writes(path)
  const parts = attribute.subAttributes.flatMap((sub) => {
    const part = { ...path, sub }
    return limited(sub, reads || support.reads(part), writes || support.writes(part))
  })
  if (parts.length === 0) return limited(attribute, reads, writes)
  const readsAny = reads || parts.some(({ returned }) => returned !== 'never')
  const writesAny = writes || parts.some(({ mutability }) => mutability !== 'readOnly')
  return limited(attribute, readsAny, writesAny).map((one) => ({ ...one, subAttributes: parts }))
}

function limited(attribute: SchemaAttribute, reads: boolean, writes: boolean): SchemaAttribute[] {
  if (!reads && !writes) return []
  if (attribute.mutability === 'readOnly' || (reads && writes)) return [attribute]
  return [
    reads ? { ...attribute, mutability: 'readOnly' } : { ...attribute, mutability: 'writeOnly', returned: 'never' },
  ]
}
