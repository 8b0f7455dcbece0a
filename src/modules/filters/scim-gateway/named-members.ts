import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { isCore } from '#protocols/scim/resource-schema.ts'

/**
 * The ids that a filter on groups asks about in `members`. With the membership of these alone it can be told whether a
 * group matches, however many members it has. Undefined when the filter looks at members in another way.
 */
export function namedMembers(filter: ScimFilter): ReadonlySet<string> | undefined {
  const ids = new Set<string>()
  return collect(filter, ids) ? ids : undefined
}

function collect(filter: ScimFilter, ids: Set<string>): boolean {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.filters.every((part) => collect(part, ids))
    case 'not':
      return collect(filter.filter, ids)
    case 'element':
      return !isCore(filter.of, 'members') || pins(filter.filter, 'value', undefined, ids)
    default:
      return !isCore(filter.path, 'members') || pins(filter, 'members', 'value', ids)
  }
}

/** Whether only elements with a value that the filter names can pass it. */
function pins(filter: ScimFilter, name: string, sub: string | undefined, ids: Set<string>): boolean {
  if (filter.kind === 'and') return filter.filters.some((part) => pins(part, name, sub, ids))
  if (filter.kind === 'or') return filter.filters.every((part) => pins(part, name, sub, ids))
  if (filter.kind !== 'compare' || filter.operator !== 'eq' || typeof filter.value !== 'string') return false
  if (filter.path.attribute.name !== name || filter.path.sub?.name !== sub) return false
  ids.add(filter.value)
  return true
}
