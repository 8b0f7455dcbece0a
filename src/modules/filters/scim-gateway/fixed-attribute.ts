import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { isCore } from '#protocols/scim/resource-schema.ts'

/** The value that `name eq "value"` demands of every match, where the filter is that or a conjunction with it. */
export function fixedAttribute(filter: ScimFilter | undefined, name: string, sub?: string): string | undefined {
  if (filter === undefined) return undefined
  for (const part of filter.kind === 'and' ? filter.filters : [filter]) {
    if (part.kind === 'and') {
      const found = fixedAttribute(part, name, sub)
      if (found !== undefined) return found
    }
    if (part.kind === 'element' && isCore(part.of, name) && sub !== undefined) {
      const found = fixedAttribute(part.filter, sub)
      if (found !== undefined) return found
    }
    if (part.kind !== 'compare' || part.operator !== 'eq' || typeof part.value !== 'string') continue
    if (isCore(part.path, name) && part.path.sub?.name === sub) return part.value
  }
  return undefined
}
