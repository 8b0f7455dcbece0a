import { type TimeAttribute, timeAttribute, timeValue } from '#identity/entry-times.ts'
import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import { timeOperator } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { AttributePath } from '#protocols/scim/resource-schema.ts'
import { dateTimeMillis } from '#protocols/scim/schema.ts'

/** Where a SCIM attribute's values stand. */
export interface Held {
  /** The internal attributes that together hold them; none when there never is a value. */
  readonly names: readonly string[]
  /** The values stand inside those of the names, so a store can tell only whether there may be any. */
  readonly inside?: boolean
  /** Inside: each value is an element as JSON text, which has the attribute under this name. */
  readonly jsonName?: string
  /** True where what the attribute holds is not what SCIM counts as present; undefined where that is never so. */
  readonly isEmpty?: (attribute: string) => Filter
  /** All values may be empty texts, which SCIM does not count as present. */
  readonly orEmpty?: boolean
  /** The first value is that of the primary element. */
  readonly primaryFirst?: boolean
  /** The values are times as `timeValue` writes them, and the store compares and sorts them. */
  readonly isTime?: boolean
}

/** Names alone are short for `Held`; undefined when nothing can be said. */
export type NameOf = (path: AttributePath) => readonly string[] | Held | undefined

/** Where `meta.created` and `meta.lastModified` are; undefined for any other path and where the store doesn't serve them. */
export function heldTime(
  { attribute, sub, extension }: AttributePath,
  served: readonly TimeAttribute[],
): Held | undefined {
  if (extension !== undefined || attribute.name !== 'meta' || sub === undefined) return undefined
  const name = timeAttribute(`meta.${sub.name}`)
  return name !== undefined && served.includes(name) ? { names: [name], isTime: true } : undefined
}

export interface Translation {
  /** Never matches less than the SCIM filter. Undefined: no restriction. */
  readonly filter: Filter | undefined
  /** It matches no more either; otherwise what it finds must be tested again with the SCIM filter. */
  readonly exact: boolean
}

type ComparePart = ScimFilter & { kind: 'compare' }

const unknown: Translation = { filter: undefined, exact: false }

/** Comparisons with an absent attribute are false in SCIM and their negation true, so negation is pushed to the leaves. */
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
  const held = heldAt(path, nameOf)
  if (held?.inside === true || held?.orEmpty === true) return negated ? unknown : somewhere(held)
  const isEmpty = held?.isEmpty
  if (isEmpty === undefined) return leaf(held, present, negated)
  const isFull = (attribute: string): Filter => ({
    kind: 'and',
    filters: [present(attribute), { kind: 'not', filter: isEmpty(attribute) }],
  })
  return leaf(held, isFull, negated)
}

function translateCompare(part: ComparePart, nameOf: NameOf, negated: boolean): Translation {
  const { path, operator, value } = part
  if (value === null) return translatePresent(path, nameOf, negated !== (operator === 'eq'))
  const held = heldAt(path, nameOf)
  const opposite = negated !== (operator === 'ne')
  if (held === undefined) return unknown
  if (held.names.length === 0) return leaf(held, present, opposite)
  // Lists of plain values leave empty texts out.
  if (value === '' && path.attribute.multiValued) return unknown
  const make = compareIn(held, part)
  if (make !== undefined) return leaf(held, make, opposite)
  return opposite ? unknown : somewhere(held)
}

function compareIn({ isTime, inside, jsonName }: Held, part: ComparePart): ((attribute: string) => Filter) | undefined {
  if (isTime === true) return timeComparison(part)
  if (jsonName !== undefined) return jsonComparison(part, jsonName)
  return inside === true ? undefined : comparison(part)
}

export function heldAt(path: AttributePath, nameOf: NameOf): Held | undefined {
  const held = nameOf(path)
  return held === undefined || 'names' in held ? held : { names: held }
}

/** Whatever is true of a value needs one. */
const somewhere = (held: Held): Translation => ({ ...leaf(held, present, false), exact: false })

const present = (attribute: string): Filter => ({ kind: 'present', attribute })

/** Undefined where stores do not agree on the comparison: order, dates and numbers. */
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
 * JSON escapes the quotes of a text, so `"name":"value"` is found in an element exactly when its part has that value. Other
 * writers than the built-in mapping may put a space behind the colon.
 */
function jsonComparison(
  { operator, path, value }: ComparePart,
  name: string,
): ((attribute: string) => Filter) | undefined {
  const { caseExact } = path.sub ?? path.attribute
  const isText = typeof value === 'string' && value !== ''
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

function leaf(held: Held | undefined, make: (attribute: string) => Filter, negated: boolean): Translation {
  if (held === undefined) return unknown
  const filters = held.names.map((name): Filter => (negated ? opposite(name, make(name)) : make(name)))
  const [only] = filters
  if (filters.length === 1 && only !== undefined) return { filter: only, exact: true }
  return { filter: { kind: negated ? 'and' : 'or', filters }, exact: true }
}

/** A comparison with an absent attribute is neither true nor false here, so its absence is asked for beside it. */
const opposite = (attribute: string, filter: Filter): Filter => ({
  kind: 'or',
  filters: [
    { kind: 'not', filter: present(attribute) },
    { kind: 'not', filter },
  ],
})

/** One condition on one element is the same as the condition on the attribute; several only narrow the candidates. */
function translateElement(part: ScimFilter & { kind: 'element' }, nameOf: NameOf, negated: boolean): Translation {
  const inner = part.filter
  // Inside the brackets of a list of plain values, `value` is the list itself.
  const isComplex = part.of.attribute.type === 'complex'
  const ofElement: NameOf = (path) => nameOf(isComplex ? { ...part.of, sub: path.attribute } : part.of)
  if (isPlain(inner)) return translateFilter(inner, ofElement, negated)
  if (negated) return unknown
  const held = heldAt(part.of, nameOf)
  const parts = conjuncts(inner)
    .filter((one) => isPlain(one) && heldAt(one.path, ofElement)?.inside !== true)
    .map((one) => translateFilter(one, ofElement))
    .filter(({ filter }) => filter !== undefined)
  if (parts.length === 0) return held === undefined ? unknown : somewhere(held)
  return { ...allOf(parts), exact: false }
}

const conjuncts = (filter: ScimFilter): readonly ScimFilter[] =>
  filter.kind === 'and' ? filter.filters.flatMap(conjuncts) : [filter]

/** True of a list exactly when it is true of one of its elements. */
const isPlain = (one: ScimFilter): one is ScimFilter & { kind: 'present' | 'compare' } =>
  one.kind === 'present' || (one.kind === 'compare' && one.operator !== 'ne' && one.value !== null)
