import type { Target } from './target.ts'

/** Columns by name, as text; one without a value is the empty text. */
export type QueryRow = Readonly<Record<string, string>>

/** Optional: a database that accepts read-only statements of the configuration. */
export interface QueryTarget extends Target {
  /** A statement that takes too long is stopped, and holds up no one else. */
  readonly stopsReads: boolean
  /**
   * The first rows of one `select` with placeholders such as `:name`, whose values are bound and never part of the
   * text. BAD_REQUEST for a placeholder without a value, TARGET_FAILED for a statement that is invalid or would write.
   */
  readRows(statement: string, values: Readonly<Record<string, string>>, limit: number): Promise<readonly QueryRow[]>
}

export const hasQueries = (target: Target): target is QueryTarget => 'readRows' in target

const tokens = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g

/** Rewrites a statement with OpenUnison's `?` placeholders: each gets the name. Quoted text stays. */
export const namePlaces = (statement: string, name: string): string =>
  statement.replace(tokens, (token) => (token === '?' ? `:${name}` : token))
