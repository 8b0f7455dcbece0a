import type { CompareFilter, Filter, LeafFilter, PresentFilter, SubstringFilter } from '#identity/filter/ast.ts'
import { GatewayError } from '#kernel/errors.ts'

/** Only what every system with an index compares alike: presence, equality and substrings, combined. */
export type NarrowFilter =
  | { readonly kind: 'and'; readonly filters: readonly NarrowFilter[] }
  | { readonly kind: 'or'; readonly filters: readonly NarrowFilter[] }
  | { readonly kind: 'not'; readonly filter: PresentFilter }
  | PresentFilter
  | (CompareFilter & { readonly kind: 'equal' })
  | SubstringFilter

/**
 * A filter that matches everything the given one matches, and maybe more. It finds candidates in a system whose
 * equality may be wider than ours and whose order of values may differ. Only presence is negated: negating a wider
 * equality would lose entries.
 */
export function narrowFilter(filter: Filter): NarrowFilter {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return { kind: filter.kind, filters: filter.filters.map(narrowFilter) }
    case 'not':
      return narrowNegation(filter.filter)
    case 'present':
    case 'substring':
      return filter
    case 'equal':
      return { ...filter, kind: 'equal' }
    default:
      return { kind: 'present', attribute: filter.attribute }
  }
}

/**
 * By De Morgan, which holds for three values too. A comparison with an absent attribute is undefined, and so is its
 * negation.
 */
function narrowNegation(filter: Filter): NarrowFilter {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return { kind: filter.kind === 'and' ? 'or' : 'and', filters: filter.filters.map(narrowNegation) }
    case 'not':
      return narrowFilter(filter.filter)
    case 'present':
      return { kind: 'not', filter }
    default:
      return { kind: 'present', attribute: filter.attribute }
  }
}

/** The attributes that a filter reads, in lower case. */
export function filterAttributes(filter: Filter, into = new Set<string>()): Set<string> {
  if (filter.kind === 'and' || filter.kind === 'or') for (const part of filter.filters) filterAttributes(part, into)
  else if (filter.kind === 'not') filterAttributes(filter.filter, into)
  else into.add(filter.attribute.toLowerCase())
  return into
}

/** The same filter on other attributes or values: `change` replaces every comparison. */
export function mapFilter(filter: Filter, change: (leaf: LeafFilter) => Filter): Filter {
  if (filter.kind === 'and' || filter.kind === 'or') {
    return { kind: filter.kind, filters: filter.filters.map((part) => mapFilter(part, change)) }
  }
  return filter.kind === 'not' ? { kind: 'not', filter: mapFilter(filter.filter, change) } : change(filter)
}

/** A filter clause about the values of one attribute. */
export type ValueFilter = CompareFilter | SubstringFilter

/**
 * When a filter is true, in two-valued logic: an undefined clause is simply not true, so a database's handling of
 * NULL does not matter.
 */
export type Truth =
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Truth[] }
  /** A value of the attribute passes. */
  | { readonly kind: 'match'; readonly test: ValueFilter }
  /** The attribute has values, and none of them passes. */
  | { readonly kind: 'mismatch'; readonly test: ValueFilter }
  | { readonly kind: 'present' | 'absent'; readonly test: PresentFilter }

/** The maximum number of clauses. More is BAD_REQUEST, before a database has to reject it. */
const maxClauses = 200

export const isAlways = (truth: Truth): boolean => truth.kind === 'all' && truth.parts.length === 0

/** Throws BAD_REQUEST for a filter that is too large. */
export function truthOf(filter: Filter): Truth {
  let clauses = 0
  const walk = (part: Filter, wanted: boolean): Truth => {
    if (++clauses > maxClauses) {
      const publicText = 'The filter has too many clauses.'
      throw new GatewayError('BAD_REQUEST', publicText, { publicText })
    }
    switch (part.kind) {
      case 'and':
      case 'or': {
        const kind = (part.kind === 'and') === wanted ? 'all' : 'any'
        const parts = part.filters.map((each) => walk(each, wanted)).filter((each) => kind === 'any' || !isAlways(each))
        const [only] = parts
        return parts.length === 1 && only !== undefined ? only : { kind, parts }
      }
      case 'not':
        return walk(part.filter, !wanted)
      case 'present':
        return { kind: wanted ? 'present' : 'absent', test: part }
      default:
        return { kind: wanted ? 'match' : 'mismatch', test: part }
    }
  }
  return walk(filter, true)
}
