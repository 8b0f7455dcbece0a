import type { CompareFilter, Filter, PresentFilter, SubstringFilter } from '#identity/filter/ast.ts'
import { GatewayError } from '#kernel/errors.ts'

/** A filter clause about the values of one attribute. */
export type ValueFilter = CompareFilter | SubstringFilter

/**
 * When a filter is true, in two-valued logic: what is undefined in the filter is simply not true here, so no database's
 * idea of NULL comes into it.
 */
export type Truth =
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Truth[] }
  /** Some value of the attribute passes. */
  | { readonly kind: 'match'; readonly test: ValueFilter }
  /** The attribute is there, and none of its values passes. */
  | { readonly kind: 'mismatch'; readonly test: ValueFilter }
  | { readonly kind: 'present' | 'absent'; readonly test: PresentFilter }

/** Clauses in a filter; more is BAD_REQUEST, before a database has to refuse it. */
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
