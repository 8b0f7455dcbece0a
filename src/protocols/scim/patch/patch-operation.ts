import type { JsonValue } from '#kernel/json.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { AttributePath } from '#protocols/scim/resource-schema.ts'

/** What one operation points at: an attribute, the elements of it that a filter picks, or a sub-attribute of either. */
export interface PatchTarget extends AttributePath {
  readonly filter?: ScimFilter
}

/** Normalised: names resolved, the value in the schema's form. A `replace` with nothing has become a `remove`. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly target: PatchTarget; readonly value: JsonValue }
  /** With values, only those are removed from a multi-valued attribute. */
  | {
      readonly op: 'remove'
      readonly target: PatchTarget
      readonly values?: readonly JsonValue[]
      /** The client sent a `replace` with nothing, whose filter must pick something where that of a `remove` need not. */
      readonly replaces?: true
    }
