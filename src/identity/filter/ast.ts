/**
 * The filters that directories and targets evaluate. A filter is parsed from RFC 4515 text and from SCIM, evaluated in memory, and
 * translated to SQL, LDAP and SCIM. Values are plain text; only printers escape.
 */
export type Filter =
  /** Without members: true. */
  | { readonly kind: 'and'; readonly filters: readonly Filter[] }
  /** Without members: false. */
  | { readonly kind: 'or'; readonly filters: readonly Filter[] }
  | { readonly kind: 'not'; readonly filter: Filter }
  | LeafFilter

export type LeafFilter = PresentFilter | CompareFilter | SubstringFilter

export interface PresentFilter {
  readonly kind: 'present'
  readonly attribute: string
}

/** True if any value compares so; undefined if the attribute is absent (RFC 4511 4.5.1.7). */
export interface CompareFilter {
  readonly kind: 'equal' | 'approximate' | 'greaterOrEqual' | 'lessOrEqual' | 'greater' | 'less'
  readonly attribute: string
  readonly value: string
  /** Absent: letter case counts only in claims of a token. */
  readonly caseExact?: boolean | undefined
}

export interface SubstringFilter {
  readonly kind: 'substring'
  readonly attribute: string
  readonly initial?: string | undefined
  readonly any: readonly string[]
  readonly final?: string | undefined
  readonly caseExact?: boolean | undefined
}
