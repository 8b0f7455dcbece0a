import type { Issues } from '#kernel/issues.ts'
import { type AttributePath, pathKey, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { defaultSubAttribute } from '#protocols/scim/schema.ts'
import type { Params } from '#sdk/params.ts'

/** Which internal attribute holds the values of a SCIM attribute, by `pathKey`. */
export type FilterNames = ReadonlyMap<string, string>

/**
 * Reads `scim=internal` pairs, in one comma-separated text or repeated. What they say wins over `derived`, the
 * one-to-one rules of the mappings.
 */
export function readFilterNames(
  params: Params,
  name: string,
  schema: ResourceSchema,
  issues: Issues,
  derived: ReadonlyMap<AttributePath, string>,
): FilterNames {
  const names = new Map<string, string>()
  for (const [path, internal] of derived) if (path.attribute.type !== 'complex') names.set(pathKey(path), internal)
  for (const [i, value] of params.values(name).entries()) {
    for (const pair of value.split(',')) {
      if (pair.trim() !== '')
        readPair(pair, (message, level) => issues[level](params.pathOf(name, i), message), schema, names)
    }
  }
  return names
}

function readPair(
  pair: string,
  report: (message: string, level: 'error' | 'warning') => void,
  schema: ResourceSchema,
  names: Map<string, string>,
): void {
  const cut = pair.lastIndexOf('=')
  const scim = pair.slice(0, Math.max(0, cut)).trim()
  const internal = pair.slice(cut + 1).trim()
  if (cut < 0 || scim === '' || internal === '') {
    report(`"${pair.trim()}" is not of the form scim=internal`, 'error')
    return
  }
  const path = schema.resolveAttribute(scim)
  if (path === undefined) {
    report(`"${scim}" is no SCIM attribute of ${schema.core.name}, so no filter can use it`, 'warning')
    return
  }
  const inner = path.sub === undefined ? defaultSubAttribute(path.attribute) : undefined
  names.set(pathKey(inner === undefined ? path : { ...path, sub: inner }), internal)
}
