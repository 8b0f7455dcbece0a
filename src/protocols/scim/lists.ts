import { createHash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { compareCodePoints, foldValue } from '#kernel/text/compare-texts.ts'
import { member, requireMessageOf, textMember, wholeMember } from '#protocols/scim/message.ts'
import { readAttribute } from '#protocols/scim/schema/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { dateTimeMillis, defaultSubAttribute, type SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'

export const defaultCount = 100
export const maxCount = 200

/** The requested part of a list: by index (RFC 7644 3.4.2.4) or by cursor (RFC 9865). */
type ListPage =
  | {
      readonly kind: 'index'
      /** From 1. */
      readonly startIndex: number
      readonly count: number
    }
  | {
      readonly kind: 'cursor'
      /** Empty for the first page. */
      readonly cursor: string
      readonly count: number
    }

/**
 * `cursor`, even an empty one, selects the cursor method; without it the index method is used. By index a start
 * below 1 is 1 and a count below 0 is 0; by cursor a count below 1 is invalidCount. More than the maximum is the
 * maximum.
 */
export function parsePage(query: URLSearchParams): ListPage {
  const cursor = query.get('cursor')
  const start = query.get('startIndex')
  if (cursor === null) {
    const startIndex = Math.max(1, wholeNumber(start) ?? invalid('startIndex'))
    const count = Math.max(0, wholeNumber(query.get('count'), defaultCount) ?? invalid('count'))
    return { kind: 'index', startIndex, count: Math.min(count, maxCount) }
  }
  // RFC 9865 gives the two different meanings, so they can't be combined.
  if (start !== null)
    throw scimError('invalidValue', 'cursor and startIndex cannot be used together. Send one of them.')
  const count = wholeNumber(query.get('count'), defaultCount)
  if (count === undefined || count < 1) {
    throw scimError('invalidCount', `count must be a whole number from 1 to ${maxCount}.`)
  }
  return { kind: 'cursor', cursor, count: Math.min(count, maxCount) }
}

/** Undefined if it is not a whole number. */
function wholeNumber(text: string | null, fallback = 1): number | undefined {
  if (text === null || text === '') return fallback
  return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : undefined
}

function invalid(name: string): never {
  throw scimError('invalidValue', `${name} must be a whole number.`)
}

export const maxCursorLength = 16_384

const bindingBytes = 12
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * A cursor of RFC 9865: a position, bound to its query. `scope` distinguishes queries: the same list, filter and order have
 * the same scope. A cursor has only unreserved characters (RFC 3986 2.3) and is not stored.
 */
export function writeCursor(scope: readonly string[], position: string): string {
  return Buffer.concat([binding(scope), Buffer.from(position, 'utf8')]).toString('base64url')
}

/** Throws invalidCursor if it is malformed or belongs to another query. */
export function readCursor(scope: readonly string[], cursor: string): string {
  const bytes = cursor.length > maxCursorLength ? Buffer.alloc(0) : Buffer.from(cursor, 'base64url')
  const same = bytes.toString('base64url') === cursor && bytes.subarray(0, bindingBytes).equals(binding(scope))
  if (!same) throw invalidCursor()
  try {
    return decoder.decode(bytes.subarray(bindingBytes))
  } catch (cause) {
    throw invalidCursor(cause)
  }
}

export const invalidCursor = (cause?: unknown) =>
  scimError('invalidCursor', 'cursor: this query did not return it. Send an empty cursor for the first page.', {
    cause,
  })

export const expiredCursor = () =>
  scimError('expiredCursor', 'cursor: it has expired. Send an empty cursor for the first page.')

const binding = (scope: readonly string[]): Buffer =>
  createHash('sha256').update(JSON.stringify(scope)).digest().subarray(0, bindingBytes)

const listSchema = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

/** The place of the page in the list: its start for the index method, the next cursor for the cursor method. */
type PagePlace = { readonly startIndex: number } | { readonly nextCursor: string | undefined }

export function listResponse(
  resources: readonly JsonObject[],
  total: number,
  place: PagePlace = { startIndex: 1 },
): JsonObject {
  const { nextCursor } = { nextCursor: undefined, ...place }
  return {
    schemas: [listSchema],
    totalResults: total,
    ...('startIndex' in place ? { startIndex: place.startIndex } : {}),
    itemsPerPage: resources.length,
    ...(nextCursor === undefined ? {} : { nextCursor }),
    Resources: resources,
  }
}

export const searchSchema = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest'

/**
 * The body of `POST .search` (RFC 7644 3.4.3, with RFC 9865's cursor) as the query that a GET would have. Throws
 * invalidSyntax for another message, invalidValue for a parameter of the wrong type. Other members are ignored.
 */
export function readSearchRequest(body: JsonValue): URLSearchParams {
  const message = requireMessageOf(body, searchSchema)
  const query = new URLSearchParams()
  const put = (name: string, value: string | number | undefined): void => {
    if (value !== undefined) query.set(name, String(value))
  }
  for (const name of ['attributes', 'excludedAttributes']) put(name, namesMember(message, name))
  for (const name of ['filter', 'sortBy', 'sortOrder', 'cursor']) put(name, textMember(message, name))
  for (const name of ['startIndex', 'count']) put(name, wholeMember(message, name))
  return query
}

function namesMember(message: JsonObject, name: string): string | undefined {
  const value = member(message, name)
  if (value === undefined) return undefined
  const names: readonly JsonValue[] = Array.isArray(value) ? value : []
  if (!Array.isArray(value) || !names.every((item) => typeof item === 'string')) {
    throw scimError('invalidValue', `${name} must be a list of texts.`)
  }
  return names.length === 0 ? undefined : names.join(',')
}

/** The order of RFC 7644 3.4.2.3, with its name resolved against a resource's schema. */
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
  const order =
    typeof a.value === 'string' ? compareCodePoints(a.value, String(b.value)) : Number(a.value) - Number(b.value)
  return order || compareCodePoints(a.exact, b.exact)
}

function sortKey(resource: JsonObject, path: AttributePath): Key | undefined {
  const { sub } = path
  const value = preferred(readAttribute(resource, path), sub?.name)
  const leaf = sub === undefined ? value : isJsonObject(value) ? preferred(value[sub.name]) : undefined
  return keyOf(sub ?? path.attribute, leaf)
}

/** Of several values the primary one, else the first. An element without the part, or with an empty one, does not count. */
function preferred(value: JsonValue | undefined, part?: string): JsonValue | undefined {
  if (!Array.isArray(value)) return value
  const hasPart = (item: JsonValue): boolean =>
    part === undefined || (isJsonObject(item) && item[part] !== undefined && item[part] !== '')
  const items: readonly JsonValue[] = value.filter(hasPart)
  return items.find((item) => isJsonObject(item) && item['primary'] === true) ?? items[0]
}

function keyOf({ type, caseExact }: SchemaAttribute, value: JsonValue | undefined): Key | undefined {
  if (typeof value === 'boolean' || typeof value === 'number') return { value: Number(value), exact: '' }
  if (typeof value !== 'string') return undefined
  if (type !== 'dateTime') return { value: foldValue(value, false), exact: caseExact ? value : '' }
  const millis = dateTimeMillis(value)
  return Number.isNaN(millis) ? undefined : { value: millis, exact: '' }
}
