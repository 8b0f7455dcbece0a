import type { Issues } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { MappingRule } from '#sdk/mapping.ts'
import type { ParsedParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { parameterTable } from './parameter-table.ts'

type Direction = 'scim2tremolo' | 'tremolo2scim'

/** The list and the `.source` parameters must name the same attributes. */
export function readRules(
  direction: Direction,
  values: ParsedParameters<typeof parameterTable>,
  params: Params,
  issues: Issues,
): MappingRule[] {
  const sources = values[`${direction}.<attribute>.source`]
  const types = values[`${direction}.<attribute>.sourceType`]
  const listed = values[direction]
  for (const part of ['source', 'sourceType', 'targetType'] as const) {
    for (const attribute of values[`${direction}.<attribute>.${part}`].keys()) {
      if (listed.includes(attribute)) continue
      const name = `${direction}.${attribute}.${part}`
      issues.error(
        params.pathOf(name),
        `"${attribute}" is not in the list ${direction}${suggestion(attribute, listed)}`,
      )
    }
  }
  return listed.flatMap((attribute, i) => {
    const source = sources.get(attribute)
    if (source === undefined) {
      issues.error(params.pathOf(direction, i), `"${attribute}" has no parameter "${direction}.${attribute}.source"`)
      return []
    }
    const path = params.pathOf(`${direction}.${attribute}.source`)
    return [{ attribute, source, sourceType: types.get(attribute) ?? 'user', path }]
  })
}

/** Attributes that the gateway makes itself. */
const ownAttributes = new Set(['id', 'schemas', 'meta', 'password'])

/** Where each rule of tremolo2scim puts its value; rules that cannot be used are reported and left out. */
export function resolvePaths(
  rules: readonly MappingRule[],
  schema: ResourceSchema,
  issues: Issues,
): Map<string, AttributePath> {
  const paths = new Map<string, AttributePath>()
  for (const { attribute, path } of rules) {
    const resolved = schema.resolve(attribute)
    if (resolved?.kind !== 'attribute') {
      const known = Array.from(schema.attributes(), (ref) => ref.attribute.name)
      issues.error(path, `no SCIM user attribute "${attribute}"${suggestion(attribute, known)}`)
    } else if (ownAttributes.has(resolved.attribute.name)) {
      issues.warning(path, `"${resolved.attribute.name}" is made by the gateway itself; the mapping is not used`)
    } else if (resolved.sub !== undefined && resolved.attribute.multiValued) {
      issues.error(path, `"${attribute}" is part of a list; map "${resolved.attribute.name}" as a whole`)
    } else {
      paths.set(attribute, resolved)
    }
  }
  return paths
}

/** One-to-one rules say by which attribute to filter; what is shown counts for more than what is taken. */
export function derivedFilterNames(
  incoming: readonly MappingRule[],
  outgoing: readonly MappingRule[],
  schema: ResourceSchema,
  scimPaths: ReadonlyMap<string, AttributePath>,
): ReadonlyMap<AttributePath, string> {
  const names = new Map<AttributePath, string>()
  const add = (path: AttributePath | undefined, internal: string): void => {
    // Logins are looked up, not compared by a mapped copy.
    if (path !== undefined && path.attribute.name !== 'userName') names.set(path, internal)
  }
  for (const { sourceType, source, attribute } of incoming) {
    if (sourceType === 'user') add(schema.resolveAttribute(source), attribute)
  }
  for (const { sourceType, source, attribute } of outgoing) {
    if (sourceType === 'user') add(scimPaths.get(attribute), source)
  }
  return names
}
