import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { readAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { dateTimeMillis, defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'

/** The order of RFC 7644 3.4.2.3, its name resolved against a resource's schema. */
export interface Sort {
  /** With the sub-attribute to compare, if the attribute is complex. */
  readonly path: AttributePath
  readonly descending: boolean
}

/**
 * Undefined without `sortBy`. Throws invalidValue: in RFC 7644 table 9, invalidPath is for PATCH only.
 */
export function parseSort(query: URLSearchParams, schema: ResourceSchema): Sort | undefined {
  const order = query.get('sortOrder')?.toLowerCase() ?? 'ascending'
  if (order !== 'ascending' && order !== 'descending') {
    throw scimError('invalidValue', 'sortOrder must be "ascending" or "descending".')
  }
  const name = query.get('sortBy')
  if (name === null || name === '') return undefined
  const path = schema.resolveAttribute(name)
  if (path === undefined || (path.sub ?? path.attribute).returned === 'never') {
    throw scimError(
      'invalidValue',
      `sortBy: the resource has no attribute ${quoted(name)}. Check the name, and the schema in /Schemas.`,
    )
  }
  const descending = order === 'descending'
  const leaf = path.sub ?? path.attribute
  if (leaf.type !== 'complex') return { path, descending }
  const sub = path.sub === undefined ? defaultSubAttribute(leaf) : undefined
  if (sub === undefined)
    throw scimError('invalidValue', `sortBy: ${leaf.name} is complex. Sort by one of its sub-attributes.`)
  return { path: { ...path, sub }, descending }
}

interface Key {
  readonly value: string | number
  /** Decides between values that differ only in letter case; empty if case does not count. */
  readonly exact: string
}

/**
 * A stable sort. Resources without a value come last, in descending order first. `pathOf` is for resources of several
 * types, which have the attribute in different places.
 */
export function sortResources<T extends JsonObject>(
  resources: readonly T[],
  { path, descending }: Sort,
  pathOf: (resource: T) => AttributePath = () => path,
): T[] {
  const keyed = resources.map((resource) => ({ resource, key: sortKey(resource, pathOf(resource)) }))
  const sign = descending ? -1 : 1
  keyed.sort((a, b) => sign * compareKeys(a.key, b.key))
  return keyed.map(({ resource }) => resource)
}

function compareKeys(a: Key | undefined, b: Key | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  return compare(a.value, b.value) || compare(a.exact, b.exact)
}

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)

function sortKey(resource: JsonObject, path: AttributePath): Key | undefined {
  const value = preferred(readAttribute(resource, path))
  const { sub } = path
  const leaf = sub === undefined ? value : isJsonObject(value) ? preferred(value[sub.name]) : undefined
  return keyOf(sub ?? path.attribute, leaf)
}

/** Of several values the primary one, else the first. */
function preferred(value: JsonValue | undefined): JsonValue | undefined {
  if (!Array.isArray(value)) return value
  return value.find((item: JsonValue) => isJsonObject(item) && item['primary'] === true) ?? value[0]
}

function keyOf({ type, caseExact }: SchemaAttribute, value: JsonValue | undefined): Key | undefined {
  if (typeof value === 'boolean' || typeof value === 'number') return { value: Number(value), exact: '' }
  if (typeof value !== 'string' || value === '') return undefined
  if (type !== 'dateTime') return { value: value.toLowerCase(), exact: caseExact ? value : '' }
  const millis = dateTimeMillis(value)
  return Number.isNaN(millis) ? undefined : { value: millis, exact: '' }
}
