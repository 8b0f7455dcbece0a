import type { JsonValue } from '#kernel/json.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'

/**
 * The element that a filter describes: `type eq "work" and primary eq true` is `{type: "work", primary: true}`.
 * Undefined when it does not describe exactly one, as with `or` or `co`, or one that a client cannot make.
 */
export function elementFromFilter(filter: ScimFilter): Record<string, JsonValue> | undefined {
  const element: Record<string, JsonValue> = {}
  for (const part of conjuncts(filter)) {
    if (part.kind !== 'compare' || part.operator !== 'eq' || part.value === null) return undefined
    const { name, mutability } = part.path.attribute
    if (mutability === 'readOnly') return undefined
    if (Object.hasOwn(element, name) && element[name] !== part.value) return undefined
    element[name] = part.value
  }
  return element
}

const conjuncts = (filter: ScimFilter): readonly ScimFilter[] =>
  filter.kind === 'and' ? filter.filters.flatMap(conjuncts) : [filter]
