import type { AttributePath, AttributeRef } from '#protocols/scim/resource-schema.ts'

export type CompareOperator = 'eq' | 'ne' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le'

/** Typed as the attribute is: a boolean attribute is compared with a boolean, whatever quotes the client used. */
export type CompareValue = string | number | boolean | null

/**
 * A filter of RFC 7644 3.4.2.2, its names resolved against a resource's schema. `emails[type eq "work"].value eq "x"`
 * has no form of its own: it is an element filter with both conditions.
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
  /** True when one element of the attribute satisfies the whole filter; paths inside are those of the element. */
  | { readonly kind: 'element'; readonly of: AttributeRef; readonly filter: ScimFilter }
