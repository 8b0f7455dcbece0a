import type { Issues, Path } from '#kernel/issues.ts'
import { type AttributePath, type AttributeRef, pathKey, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { MappingRule } from '#sdk/mapping.ts'
import type { FilterNames } from './filter-names.ts'
import { SchemaMapping } from './schema-mapping.ts'

/** What the gateway makes itself, and the login and the password, which are no attributes of a mapping. */
const ownOfUsers = new Set(['schemas', 'id', 'meta', 'userName', 'password', 'groups'])
const ownOfGroups = new Set(['schemas', 'id', 'meta', 'displayName', 'members'])

const nothing = { paths: () => false, names: new Set<string>() }

/** A mapping of nothing, where only the mapping lines count. */
export const noMapping = (schema: ResourceSchema): SchemaMapping => new SchemaMapping(schema, [], nothing)

/**
 * The built-in mapping of users, without what lines say otherwise: a SCIM attribute that a line shows is left to the
 * lines in both directions, and an internal attribute that a line makes is not made here.
 */
export function userMapping(
  schema: ResourceSchema,
  incoming: readonly MappingRule[],
  shown: Iterable<AttributePath>,
): SchemaMapping {
  const keys = new Set(Array.from(shown, pathKey))
  return new SchemaMapping(schema, refs(schema, ownOfUsers), {
    paths: (path) => keys.has(pathKey(path)) || keys.has(pathKey(wholeOf(path))),
    names: new Set(incoming.map(({ attribute }) => attribute.toLowerCase())),
  })
}

/** The built-in mapping of groups, without the attributes that `groupFilterScim2Ldap` gives another name. */
export function groupMapping(schema: ResourceSchema, names: FilterNames): SchemaMapping {
  return new SchemaMapping(schema, refs(schema, ownOfGroups), {
    paths: (path) => names.has(pathKey(path)) || names.has(pathKey(wholeOf(path))),
    names: new Set(),
  })
}

/** Filters take these names for the entry's own login, id and name, so no attribute can be found by them. */
const reserved = new Set(['id', 'userid', 'name', 'tremolo_user_id'])

export function checkNames(mapping: SchemaMapping, login: string, path: Path, issues: Issues): void {
  for (const name of mapping.produces) {
    if (reserved.has(name.toLowerCase()) || name.toLowerCase() === login.toLowerCase()) {
      issues.error(path, `the attribute "${name}" of a schema has a name that is in use; it needs a mapping line`)
    }
  }
}

const refs = (schema: ResourceSchema, own: ReadonlySet<string>): AttributeRef[] =>
  Array.from(schema.attributes()).filter(
    ({ attribute, extension }) => extension !== undefined || !own.has(attribute.name),
  )

const wholeOf = ({ attribute, extension }: AttributePath): AttributeRef =>
  extension === undefined ? { attribute } : { attribute, extension }
