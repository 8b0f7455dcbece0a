import type { Target } from '#sdk/target/target.ts'

/** Columns by name, as text; one without a value is the empty text. */
export type QueryRow = Readonly<Record<string, string>>

/** Optional: a database that a statement of the configuration can be put to, for reading alone. */
export interface QueryTarget extends Target {
  /**
   * The first rows of one `select` with places such as `:name`, whose values are bound and never part of the text.
   * BAD_REQUEST for a place without a value, TARGET_FAILED for a statement that is none or that would write.
   */
  readRows(statement: string, values: Readonly<Record<string, string>>, limit: number): Promise<readonly QueryRow[]>
}

export const hasQueries = (target: Target): target is QueryTarget => 'readRows' in target
