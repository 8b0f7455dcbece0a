import { groupMapping, userMapping } from '#features/scim/gateway/mapping-config.ts'
import type { SchemaMapping } from '#features/scim/gateway/schema-mapping.ts'
import { internalName, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

/** An internal attribute of the built-in mapping, for which another system needs a column or type. */
export interface ScimAttribute {
  readonly name: string
  /** Only letters, and unique. */
  readonly plainName: string
  readonly multiValued: boolean
}

export const scimUserAttributes: readonly ScimAttribute[] = attributesOf(
  userMapping(new ResourceSchema(userSchema, [enterpriseUserSchema]), [], []),
)

export const scimGroupAttributes: readonly ScimAttribute[] = attributesOf(
  groupMapping(new ResourceSchema(groupSchema), new Map()),
)

function attributesOf({ produces, taken }: SchemaMapping): ScimAttribute[] {
  const lists = new Set(
    taken.filter(({ attribute, sub }) => (sub ?? attribute).multiValued).map((path) => internalName(path)),
  )
  return produces.map((name) => ({
    name,
    plainName: plainName(name),
    multiValued: lists.has(name) || lists.has(name.replace(/\.value$/, '')),
  }))
}

/** `urn:…:User:manager.value` is `managerValue`. */
function plainName(name: string): string {
  return name.replace(/^urn:.*:/, '').replace(/\W+([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
