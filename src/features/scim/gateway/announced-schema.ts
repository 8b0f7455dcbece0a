import { type AttributePath, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import type { GatewayConfig } from './gateway-config.ts'

export interface Support {
  /** The attribute is listed as in the full schema. */
  readonly whole: (path: AttributePath) => boolean
  /** The attribute with the parts that can be stored or shown. */
  readonly shape: (path: AttributePath) => SchemaAttribute
  readonly reads: (path: AttributePath) => boolean
  readonly writes: (path: AttributePath) => boolean
}

/** The schema without attributes that are neither read nor written. */
export function announcedSchema(full: ResourceSchema, support: Support): ResourceSchema {
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
  if (support.whole(path)) return [path.attribute]
  const attribute = support.shape(path)
  const reads = support.reads(path)
  const writes = support.writes(path)
  const parts = attribute.subAttributes.flatMap((sub) => {
    const part = { ...path, sub }
    return limited(sub, support.reads(part), writes || support.writes(part))
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

/** Attributes can be changed only if there is a workflow for it. */
export function limitedGroups(listed: ResourceSchema, workflows: GatewayConfig['workflows']): ResourceSchema {
  const given = workflows.createGroup === undefined ? 'readOnly' : 'immutable'
  const own = workflows.updateGroup === undefined ? given : undefined
  const ofMembers = workflows.members === undefined ? 'readOnly' : undefined
  const mutable = (attribute: SchemaAttribute, limit: 'readOnly' | 'immutable' | undefined): SchemaAttribute =>
    limit === undefined || attribute.mutability === 'readOnly' ? attribute : { ...attribute, mutability: limit }
  const core = listed.core.attributes.map((attribute) =>
    attribute.name === 'members'
      ? mutable(memberAttribute(attribute, workflows.nestGroup !== undefined), ofMembers)
      : mutable(attribute, own),
  )
  const extensions = listed.extensions.map((schema) => ({
    ...schema,
    attributes: schema.attributes.map((attribute) => mutable(attribute, own)),
  }))
  return new ResourceSchema({ ...listed.core, attributes: core }, extensions)
}

export function withCore(
  { core, extensions }: ResourceSchema,
  name: string,
  more: Partial<SchemaAttribute>,
): ResourceSchema {
  const attributes = core.attributes.map((attribute) =>
    attribute.name === name ? { ...attribute, ...more } : attribute,
  )
  return new ResourceSchema({ ...core, attributes }, extensions)
}

/** The display name of a member is that of the user or group, so clients cannot set it. */
const memberAttribute = (members: SchemaAttribute, nests: boolean): SchemaAttribute => ({
  ...members,
  subAttributes: members.subAttributes.map((part) => {
    if (part.name === 'display') return { ...part, mutability: 'readOnly' }
    const only = (list: readonly string[]): readonly string[] => (nests ? list : list.filter((name) => name === 'User'))
    return {
      ...part,
      ...(part.referenceTypes === undefined ? {} : { referenceTypes: only(part.referenceTypes) }),
      ...(part.canonicalValues === undefined ? {} : { canonicalValues: only(part.canonicalValues) }),
    }
  }),
})
