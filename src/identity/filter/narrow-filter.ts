import type {
  AndFilter,
  CompareFilter,
  Filter,
  NotFilter,
  OrFilter,
  PresentFilter,
  SubstringFilter,
} from '#identity/filter/ast.ts'

/** Only what every system with an index compares alike: presence, equality and substrings, and their combinations. */
export type NarrowFilter =
  | (Omit<AndFilter, 'filters'> & { readonly filters: readonly NarrowFilter[] })
  | (Omit<OrFilter, 'filters'> & { readonly filters: readonly NarrowFilter[] })
  | (Omit<NotFilter, 'filter'> & { readonly filter: PresentFilter })
  | PresentFilter
  | (CompareFilter & { readonly kind: 'equal' })
  | SubstringFilter

/**
 * A filter that whatever the given one matches matches as well, and some more: for a system whose equality may be wider
 * than ours, whose order of values is its own, and which is therefore asked for candidates only. So nothing but presence
 * is ever negated: a negation of a wider equality would lose entries.
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

/** By De Morgan, which holds with three values too. A comparison is undefined, and so is its negation, where nothing is. */
function narrowNegation(filter: Filter): NarrowFilter {
  switch (filter.kind) {
    case 'and':
      return { kind: 'or', filters: filter.filters.map(narrowNegation) }
    case 'or':
      return { kind: 'and', filters: filter.filters.map(narrowNegation) }
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

/** The same filter on other attributes or values: every comparison is replaced by what `change` makes of it. */
export function mapFilter(
  filter: Filter,
  change: (leaf: Exclude<Filter, AndFilter | OrFilter | NotFilter>) => Filter,
): Filter {
  if (filter.kind === 'and' || filter.kind === 'or') {
    return { kind: filter.kind, filters: filter.filters.map((part) => mapFilter(part, change)) }
  }
  return filter.kind === 'not' ? { kind: 'not', filter: mapFilter(filter.filter, change) } : change(filter)
}
