import { type AttributePath, type AttributeRef, internalName } from '#protocols/scim/schema/resource-schema.ts'

export type CompareOperator = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le'

/** Of the attribute's type: a boolean attribute is compared with a boolean, even if the client used quotes. */
export type CompareValue = string | number | boolean | null

/**
 * A filter of RFC 7644 3.4.2.2, with its names resolved against a resource's schema. `emails[type eq "work"].value
 * eq "x"` has no separate form: it is an element filter with both conditions.
 */
export type ScimFilter =
  | { readonly kind: 'and' | 'or'; readonly filters: readonly ScimFilter[] }
  | { readonly kind: 'not'; readonly filter: ScimFilter }
  | { readonly kind: 'present'; readonly path: AttributePath }
  | {
      readonly kind: 'compare'
      readonly operator: CompareOperator
      readonly path: AttributePath
      readonly value: CompareValue
    }
  /** True if one element of the attribute satisfies the whole filter; paths inside are those of the element. */
  | { readonly kind: 'element'; readonly of: AttributeRef; readonly filter: ScimFilter }

/** The conditions that must all hold for the filter to match. */
export const conjuncts = (filter: ScimFilter): readonly ScimFilter[] =>
  filter.kind === 'and' ? filter.filters.flatMap(conjuncts) : [filter]

/** RFC 7644 3.4.2.2 text, which parses to the same filter. Empty lists have no such form, and throw. */
export function printScimFilter(filter: ScimFilter): string {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      if (filter.filters.length === 0) throw new TypeError(`an empty ${filter.kind} has no text`)
      return filter.filters.map(printPart).join(` ${filter.kind} `)
    }
    case 'not':
      return `not (${printScimFilter(filter.filter)})`
    case 'present':
      return `${internalName(filter.path)} pr`
    case 'compare':
      return `${internalName(filter.path)} ${filter.operator} ${printValue(filter.value)}`
    case 'element':
      return `${internalName(filter.of)}[${printScimFilter(filter.filter)}]`
  }
}

/** Nested lists are in parentheses, except lists of one. */
function printPart(filter: ScimFilter): string {
  const text = printScimFilter(filter)
  return (filter.kind === 'and' || filter.kind === 'or') && filter.filters.length > 1 ? `(${text})` : text
}

/** RFC 7644 writes values as JSON. */
const printValue = (value: CompareValue): string => JSON.stringify(value)
