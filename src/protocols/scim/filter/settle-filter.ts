import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { AttributeRef } from '#protocols/scim/resource-schema.ts'

/** True of nothing. */
export const never: ScimFilter = { kind: 'or', filters: [] }

export const isNever = (filter: ScimFilter | undefined): boolean => filter?.kind === 'or' && filter.filters.length === 0

type Settled = ScimFilter | boolean

/**
 * The filter without the conditions that are known beforehand, since every resource has the same value of the
 * attribute: the one in `known`, or none. Undefined when nothing remains to be tested, `never` when nothing matches.
 */
export function settleFilter(
  filter: ScimFilter,
  isKnown: (ref: AttributeRef, sub: string | undefined) => boolean,
  known: JsonObject,
): ScimFilter | undefined {
  const settled = settle(filter, isKnown, known)
  return settled === true ? undefined : settled === false ? never : settled
}

function settle(
  filter: ScimFilter,
  isKnown: (ref: AttributeRef, sub: string | undefined) => boolean,
  known: JsonObject,
): Settled {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const decisive = filter.kind === 'or'
      const parts = filter.filters.map((part) => settle(part, isKnown, known))
      if (parts.includes(decisive)) return decisive
      const open = parts.filter((part) => typeof part !== 'boolean')
      const [only] = open
      return only === undefined ? !decisive : open.length === 1 ? only : { kind: filter.kind, filters: open }
    }
    case 'not': {
      const inner = settle(filter.filter, isKnown, known)
      return typeof inner === 'boolean' ? !inner : { kind: 'not', filter: inner }
    }
    case 'element':
      return isKnown(filter.of, undefined) ? evaluateFilter(filter, known) : filter
    default:
      return isKnown(filter.path, filter.path.sub?.name) ? evaluateFilter(filter, known) : filter
  }
}
