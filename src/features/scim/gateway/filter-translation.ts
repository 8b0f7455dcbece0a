import { type TimeAttribute, timeAttribute, timeValue } from '#identity/entry-times.ts'
import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import { timeOperator } from '#protocols/scim/filter/evaluate-filter.ts'
import { conjuncts, type ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { type AttributePath, isCore, pathKey } from '#protocols/scim/schema/resource-schema.ts'
import { dateTimeMillis } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema } from '#protocols/scim/schema/standard-schemas.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { Lookups } from './lookups.ts'
import type { AttributeLocation } from './schema-mapping.ts'

/** The names alone are short for a location; undefined if the store cannot evaluate conditions on the attribute. */
export type NameOf = (path: AttributePath) => readonly string[] | AttributeLocation | undefined

/** The location of `meta.created` and `meta.lastModified`; undefined for other paths, or if the store does not serve them. */
export function locateTime(
  { attribute, sub, extension }: AttributePath,
  served: readonly TimeAttribute[],
): AttributeLocation | undefined {
  if (extension !== undefined || attribute.name !== 'meta' || sub === undefined) return undefined
  const name = timeAttribute(`meta.${sub.name}`)
  return name !== undefined && served.includes(name) ? { names: [name], isTime: true } : undefined
}

export interface Translation {
  /** Matches at least what the SCIM filter matches. Undefined: no restriction. */
  readonly filter: Filter | undefined
  /** Matches nothing else; otherwise the SCIM filter must test the results again. */
  readonly exact: boolean
}

type ComparePart = ScimFilter & { kind: 'compare' }

const unknown: Translation = { filter: undefined, exact: false }

/** In SCIM a comparison with an absent attribute is false and its negation true, so negation is pushed to the leaves. */
export function translateFilter(filter: ScimFilter, nameOf: NameOf, negated = false): Translation {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const parts = filter.filters.map((part) => translateFilter(part, nameOf, negated))
      return (filter.kind === 'and') === negated ? anyOf(parts) : allOf(parts)
    }
    case 'not':
      return translateFilter(filter.filter, nameOf, !negated)
    case 'present':
      return translatePresent(filter.path, nameOf, negated)
    case 'compare':
      return translateCompare(filter, nameOf, negated)
    case 'element':
      return translateElement(filter, nameOf, negated)
  }
}

function allOf(parts: readonly Translation[]): Translation {
  const filters = parts.flatMap(({ filter }) => filter ?? [])
  return {
    filter: filters.length === 0 ? undefined : { kind: 'and', filters },
    exact: parts.every(({ exact }) => exact),
  }
}

function anyOf(parts: readonly Translation[]): Translation {
  const filters = parts.flatMap(({ filter }) => filter ?? [])
  if (filters.length < parts.length) return unknown
  return { filter: { kind: 'or', filters }, exact: parts.every(({ exact }) => exact) }
}

function translatePresent(path: AttributePath, nameOf: NameOf, negated: boolean): Translation {
  const location = locate(path, nameOf)
  if (location?.inside === true || location?.orEmpty === true || location?.partly === true) {
    return negated ? unknown : somewhere(location)
  }
  const isEmpty = location?.isEmpty
  if (isEmpty === undefined) return leaf(location, present, negated)
  const isFull = (attribute: string): Filter => ({
    kind: 'and',
    filters: [present(attribute), { kind: 'not', filter: isEmpty(attribute) }],
  })
  return leaf(location, isFull, negated)
}

function translateCompare(part: ComparePart, nameOf: NameOf, negated: boolean): Translation {
  const { path, operator, value } = part
  if (value === null) return translatePresent(path, nameOf, negated !== (operator === 'eq'))
  const location = locate(path, nameOf)
  const opposite = negated !== (operator === 'ne')
  if (location === undefined) return unknown
  if (location.names.length === 0) return leaf(location, present, opposite)
  // Lists of plain values leave empty texts out.
  if (value === '' && path.attribute.multiValued) return unknown
  const make = compareIn(location, part)
  if (make !== undefined && location.partly !== true && location.firstOnly !== true)
    return leaf(location, make, opposite)
  if (opposite) return unknown
  if (make !== undefined) return { ...leaf(location, make, false), exact: false }
  const contains = location.inside === true ? containing(part) : undefined
  return contains === undefined ? somewhere(location) : { ...leaf(location, contains, false), exact: false }
}

function compareIn(
  { isTime, inside, jsonName }: AttributeLocation,
  part: ComparePart,
): ((attribute: string) => Filter) | undefined {
  if (isTime === true) return timeComparison(part)
  if (jsonName !== undefined) return jsonComparison(part, jsonName)
  return inside === true ? undefined : comparison(part)
}

export function locate(path: AttributePath, nameOf: NameOf): AttributeLocation | undefined {
  const location = nameOf(path)
  return location === undefined || 'names' in location ? location : { names: location }
}

/** A condition on a value needs one to be present. */
const somewhere = (location: AttributeLocation): Translation => ({ ...leaf(location, present, false), exact: false })

const present = (attribute: string): Filter => ({ kind: 'present', attribute })

/** Characters that no writer of JSON escapes. */
const plainText = /[\w .@-]+/g

/**
 * Matches every stored value with a match inside, in the JSON of any writer or as plain text: it contains the longest
 * part of the compared text that JSON has only one form for. Undefined if there is no such part.
 */
function containing({ operator, path, value }: ComparePart): ((attribute: string) => Filter) | undefined {
  const isPart = ['eq', 'co', 'sw', 'ew'].includes(operator)
  if (!isPart || (typeof value !== 'string' && typeof value !== 'boolean')) return undefined
  const { type, caseExact } = path.sub ?? path.attribute
  if (type === 'dateTime') return undefined
  const parts = String(value).match(plainText) ?? []
  const longest = parts.reduce((found, part) => (part.length > found.length ? part : found), '')
  if (longest === '') return undefined
  const exactly = caseExact ? { caseExact } : {}
  return (attribute) => ({ kind: 'substring', attribute, any: [longest], ...exactly })
}

/** Undefined if stores do not agree on the comparison: order, dates and numbers. */
function comparison({ operator, path, value }: ComparePart): ((attribute: string) => Filter) | undefined {
  const { type, caseExact } = path.sub ?? path.attribute
  if (typeof value === 'boolean') return (attribute) => ({ kind: 'equal', attribute, value: String(value) })
  if (typeof value !== 'string' || type === 'dateTime') return undefined
  const exactly = caseExact ? { caseExact } : {}
  switch (operator) {
    case 'eq':
    case 'ne':
      return (attribute) => ({ kind: 'equal', attribute, value, ...exactly })
    case 'co':
    case 'sw':
    case 'ew': {
      if (value === '') return present
      const parts =
        operator === 'co'
          ? { any: [value] }
          : operator === 'sw'
            ? { initial: value, any: [] }
            : { any: [], final: value }
      return (attribute) => ({ kind: 'substring', attribute, ...parts, ...exactly })
    }
    default:
      return undefined
  }
}

const timeKinds = {
  eq: 'equal',
  ne: 'equal',
  gt: 'greater',
  ge: 'greaterOrEqual',
  lt: 'less',
  le: 'lessOrEqual',
} as const satisfies Readonly<Record<string, CompareFilter['kind']>>

function timeComparison({ operator, value }: ComparePart): ((attribute: string) => Filter) | undefined {
  const millis = dateTimeMillis(String(value))
  const asked = timeOperator(operator, String(value))
  if (Number.isNaN(millis) || !Object.hasOwn(timeKinds, asked)) return undefined
  const kind = timeKinds[asked as keyof typeof timeKinds]
  return (attribute) => ({ kind, attribute, value: timeValue(millis) })
}

/**
 * JSON escapes the quotes of a text, so an element contains `"name":"value"` exactly when its part has that value. Other
 * writers than the built-in mapping may put a space after the colon.
 */
function jsonComparison(
  { operator, path, value }: ComparePart,
  name: string,
): ((attribute: string) => Filter) | undefined {
  const { caseExact } = path.sub ?? path.attribute
  // A part of a text has one form of the letter sigma, a whole text two.
  const isText = typeof value === 'string' && value !== '' && (operator === 'sw' || caseExact || !/[Σσς]/.test(value))
  if (typeof value !== 'boolean' && !isText) return undefined
  if (operator !== 'eq' && operator !== 'ne' && !(operator === 'sw' && isText)) return undefined
  const json = JSON.stringify(value)
  const part = operator === 'sw' ? json.slice(0, -1) : json
  const exactly = caseExact ? { caseExact } : {}
  const found = (attribute: string, space: string): Filter => ({
    kind: 'substring',
    attribute,
    any: [`${JSON.stringify(name)}:${space}${part}`],
    ...exactly,
  })
  return (attribute) => ({ kind: 'or', filters: [found(attribute, ''), found(attribute, ' ')] })
}

function leaf(
  location: AttributeLocation | undefined,
  make: (attribute: string) => Filter,
  negated: boolean,
): Translation {
  if (location === undefined) return unknown
  const filters = location.names.map((name): Filter => (negated ? opposite(name, make(name)) : make(name)))
  const [only] = filters
  if (filters.length === 1 && only !== undefined) return { filter: only, exact: true }
  return { filter: { kind: negated ? 'and' : 'or', filters }, exact: true }
}

/** In internal filters a comparison with an absent attribute is neither true nor false, so absence is a condition of its own. */
const opposite = (attribute: string, filter: Filter): Filter => ({
  kind: 'or',
  filters: [
    { kind: 'not', filter: present(attribute) },
    { kind: 'not', filter },
  ],
})

/** One condition on one element equals the condition on the attribute; several only narrow the candidates. */
function translateElement(part: ScimFilter & { kind: 'element' }, nameOf: NameOf, negated: boolean): Translation {
  const inner = part.filter
  // Inside the brackets of a list of plain values, `value` is the list itself.
  const isComplex = part.of.attribute.type === 'complex'
  const ofElement: NameOf = (path) => nameOf(isComplex ? { ...part.of, sub: path.attribute } : part.of)
  if (isPlain(inner)) return translateFilter(inner, ofElement, negated)
  if (negated) return unknown
  const location = locate(part.of, nameOf)
  const plain = conjuncts(inner).filter(isPlain)
  const apart = plain.filter((one) => locate(one.path, ofElement)?.inside !== true)
  const parts = (apart.length > 0 ? apart : plain)
    .map((one) => translateFilter(one, ofElement))
    .filter(({ filter }) => filter !== undefined)
  if (parts.length === 0) return location === undefined ? unknown : somewhere(location)
  return { ...allOf(parts), exact: false }
}

/** True of a list exactly if it is true of one of its elements. */
const isPlain = (one: ScimFilter): one is ScimFilter & { kind: 'present' | 'compare' } =>
  one.kind === 'present' || (one.kind === 'compare' && one.operator !== 'ne' && one.value !== null)

/** An attribute that this gateway neither shows nor filters by never has a value. */
export function userFilterNames({ config, lookups }: FilterNamesSource, known = allNames): NameOf {
  const { filterNames, mapping } = config.users
  const shown = new Set(Array.from(config.scimPaths.values(), ({ attribute }) => attribute))
  if (!mapping.isEmpty) for (const { attribute } of mapping.shown) shown.add(attribute)
  return (path) => {
    const { attribute, extension, sub } = path
    const internal = filterNames.get(pathKey(path))
    if (internal !== undefined) {
      const isShown = shown.has(attribute)
      const location = { names: [internal], partly: attribute.multiValued && isShown }
      return isShown ? withFirst(location, path, lookups, known) : location
    }
    if (isCore(path, config.users.type.nameAttribute)) return lookups.names.login
    if (isCore(path, 'id')) {
      return lookups.userIdAttribute === undefined && !lookups.ids.marksUsers ? lookups.names.userId : undefined
    }
    // The other parts of a manager come from the manager's own resource, so the store of the user cannot search them.
    const isManager = extension === enterpriseUserSchema.id && attribute.name === 'manager'
    if (isManager && sub !== undefined && sub.name !== 'value' && shown.has(attribute)) return undefined
    const location = storedAt(mapping.locate(path), path, lookups, known) ?? locateTime(path, lookups.servedTimes.users)
    // A list in plain attributes may have types that the target has no attribute for.
    if (location !== undefined && mapping.listAt(wholeOf(path)) !== undefined) {
      return { ...location, names: location.names.filter(known.isRead) }
    }
    if (location !== undefined) return location
    const isOwn = ['meta', 'schemas', 'groups'].some((name) => isCore(path, name))
    return isOwn || shown.has(attribute) ? undefined : []
  }
}

const wholeOf = ({ sub: _, ...whole }: AttributePath): AttributePath => whole

/** An attribute that groups do not have here never has a value. */
export function groupFilterNames({ config, lookups }: FilterNamesSource, known = allNames): NameOf {
  return (path) => {
    const internal = config.groups.filterNames.get(pathKey(path))
    if (isCore(path, 'id')) return lookups.ids.areMarked ? undefined : lookups.names.groupId
    if (isCore(path, 'displayName') && internal === undefined) return lookups.names.groupName
    if (internal !== undefined) return withFirst({ names: [internal] }, path, lookups, known)
    const mapped = storedAt(config.groups.mapping.locate(path), path, lookups, known)
    const location = mapped ?? locateTime(path, lookups.servedTimes.groups)
    if (location !== undefined) return location
    return ['meta', 'schemas', 'members'].some((name) => isCore(path, name)) ? undefined : []
  }
}

interface FilterNamesSource {
  readonly config: GatewayConfig
  readonly lookups: Lookups
}

/** What the store that is read has. */
interface StoredNames {
  /** It can evaluate conditions on the internal attribute. */
  stores(name: string): boolean
  /** It has a place for the internal attribute. */
  isRead(name: string): boolean
  /** The internal attribute never has several values. */
  isSingle(name: string): boolean
}

const everyName = (_name: string): boolean => true
const allNames: StoredNames = { stores: everyName, isRead: everyName, isSingle: everyName }

/**
 * The location as far as the store can be relied on. Where others write too, JSON may have any form, the order of values
 * means nothing, and a value that does not fit its type is not shown.
 */
function storedAt(
  location: AttributeLocation | undefined,
  path: AttributePath,
  lookups: Lookups,
  known: StoredNames,
): AttributeLocation | undefined {
  if (location === undefined) return undefined
  const { attribute, sub } = path
  const { original } = location
  const stored = original === undefined || location.names.every(known.stores) ? location : original
  if (lookups.ownsValues) return stored
  const { jsonName: _, primaryFirst: __, ...rest } = stored
  const isList = sub === undefined && attribute.type === 'complex' && attribute.multiValued
  return isList ? { ...rest, inside: true } : withFirst(rest, path, lookups, known)
}

/** The location of an attribute with one value for clients, of which others may have stored several. */
function withFirst(
  location: AttributeLocation,
  { attribute, sub }: AttributePath,
  { ownsValues }: Lookups,
  { isSingle }: StoredNames,
): AttributeLocation {
  const leaf = sub ?? attribute
  const isOne = !attribute.multiValued && !leaf.multiValued && leaf.type !== 'complex'
  return isOne && !ownsValues && !location.names.every(isSingle) ? { ...location, firstOnly: true } : location
}

/** The value that every match must have by `name eq "value"`, alone or in a conjunction. */
export function fixedAttribute(filter: ScimFilter | undefined, name: string, sub?: string): string | undefined {
  for (const part of filter === undefined ? [] : conjuncts(filter)) {
    if (part.kind === 'element' && isCore(part.of, name) && sub !== undefined) {
      const found = fixedAttribute(part.filter, sub)
      if (found !== undefined) return found
    }
    if (part.kind !== 'compare' || part.operator !== 'eq' || typeof part.value !== 'string') continue
    if (isCore(part.path, name) && part.path.sub?.name === sub) return part.value
  }
  return undefined
}
