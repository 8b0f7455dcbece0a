import type { JsonValue } from '#kernel/json.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'

/**
 * The element that a filter describes: `type eq "work" and primary eq true` is `{type: "work", primary: true}`.
 * Undefined when it does not describe exactly one, as with `or` or `co`.
 */
export function elementFromFilter(filter: ScimFilter): Record<string, JsonValue> | undefined {
  const element: Record<string, JsonValue> = {}
  for (const part of filter.kind === 'and' ? filter.filters : [filter]) {
    if (part.kind !== 'compare' || part.operator !== 'eq' || part.value === null) return undefined
    const { name } = part.path.attribute
    if (Object.hasOwn(element, name) && element[name] !== part.value) return undefined
    element[name] = part.value
  }
  return element
}
