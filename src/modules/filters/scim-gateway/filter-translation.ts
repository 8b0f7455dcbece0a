import type { Filter } from '#identity/filter/ast.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { AttributePath } from '#protocols/scim/resource-schema.ts'

/**
 * The internal attributes that together hold a SCIM attribute's values; an empty list when it never has any,
 * undefined when that cannot be said.
 */
export type NameOf = (path: AttributePath) => readonly string[] | undefined

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
      return leaf(nameOf(filter.path), (attribute) => ({ kind: 'present', attribute }), negated)
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

function translateCompare(part: ComparePart, nameOf: NameOf, negated: boolean): Translation {
  const names = nameOf(part.path)
  if (part.value === null) {
    const absent = part.operator === 'eq'
    return leaf(names, (attribute) => ({ kind: 'present', attribute }), negated !== absent)
  }
  const make = comparison(part)
  return make === undefined
    ? names?.length === 0
      ? leaf(names, present, negated)
      : unknown
    : leaf(names, make, negated !== (part.operator === 'ne'))
}

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

function leaf(
  names: readonly string[] | undefined,
  make: (attribute: string) => Filter,
  negated: boolean,
): Translation {
  if (names === undefined) return unknown
  const filters = names.map(
    (name): Filter =>
      negated
        ? {
            kind: 'or',
            filters: [
              { kind: 'not', filter: present(name) },
              { kind: 'not', filter: make(name) },
            ],
          }
        : make(name),
  )
  const [only] = filters
  if (filters.length === 1 && only !== undefined) return { filter: only, exact: true }
  return { filter: { kind: negated ? 'and' : 'or', filters }, exact: true }
}

/** One condition on one element is the same as the condition on the attribute; several only narrow the candidates. */
function translateElement(part: ScimFilter & { kind: 'element' }, nameOf: NameOf, negated: boolean): Translation {
  const inner = part.filter
  const outward = (path: AttributePath): AttributePath => ({ ...part.of, sub: path.attribute })
  const isPlain = (one: ScimFilter): boolean =>
    one.kind === 'present' || (one.kind === 'compare' && one.operator !== 'ne' && one.value !== null)
  if (isPlain(inner)) return translateFilter(inner, (path) => nameOf(outward(path)), negated)
  if (negated || inner.kind !== 'and') return unknown
  const parts = inner.filters.filter(isPlain).map((one) => translateFilter(one, (path) => nameOf(outward(path))))
  return { ...allOf(parts), exact: false }
}
