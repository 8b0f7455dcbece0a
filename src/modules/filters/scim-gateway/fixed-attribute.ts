import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'

/** The value that `name eq "value"` demands of every match, where the filter is that or a conjunction with it. */
export function fixedAttribute(filter: ScimFilter | undefined, name: string, sub?: string): string | undefined {
  if (filter === undefined) return undefined
  for (const part of filter.kind === 'and' ? filter.filters : [filter]) {
    if (part.kind === 'and') {
      const found = fixedAttribute(part, name, sub)
      if (found !== undefined) return found
    }
    if (part.kind === 'element' && part.of.attribute.name === name && sub !== undefined) {
      const found = fixedAttribute(part.filter, sub)
      if (found !== undefined) return found
    }
    if (part.kind !== 'compare' || part.operator !== 'eq' || typeof part.value !== 'string') continue
    if (part.path.extension === undefined && part.path.attribute.name === name && part.path.sub?.name === sub) {
      return part.value
    }
  }
  return undefined
}

/** Whether the filter looks at the attribute at all. */
export function mentions(filter: ScimFilter, name: string): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.some((part) => mentions(part, name))
    case 'not':
      return mentions(filter.filter, name)
    case 'element':
      return filter.of.attribute.name === name
    default:
      return filter.path.attribute.name === name
  }
}
