import type { Filter } from '#identity/filter/ast.ts'

/** A search for users or groups. */
export interface SearchQuery {
  /** All if absent. */
  readonly filter?: Filter | undefined
  /** How many to skip. */
  readonly offset: number
  readonly limit: number
  /** The requested attributes; all if absent. */
  readonly attributes?: readonly string[] | undefined
  /** The store's own order if absent: that of creation in Gatehouse's directory. */
  readonly sort?: SortOrder | undefined
  /**
   * The `next` of a page of the same filter and order, instead of an offset. The search continues after it, at the same
   * cost anywhere. Any other text is BAD_REQUEST.
   */
  readonly after?: string | undefined
  /** The total is not needed, so that it need not be counted: it may be smaller, but shows whether more follow. */
  readonly uncounted?: boolean
}

/**
 * Sorts by the attribute's first value without regard to letter case; only the beginning of a long value counts. With
 * `caseExact`, letter case decides between values that are otherwise equal. Entries without a value come last (RFC 7644
 * 3.4.2.3). Entries that compare equal are in the order of creation. Descending reverses all of that.
 */
export interface SortOrder {
  readonly attribute: string
  readonly descending: boolean
  readonly caseExact: boolean
}

/** A page of users or groups. */
export interface SearchPage<T> {
  /** In a stable order. */
  readonly items: readonly T[]
  /** How many match in total. */
  readonly total: number
  /** Where the next page starts; absent on the last page. */
  readonly next?: string | undefined
}
