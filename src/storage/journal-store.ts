import type { JsonValue } from '#kernel/json.ts'

/** One call to an API. Texts hold no secrets: whoever adds the row has left them out. */
export interface JournalRow {
  readonly time: Date
  readonly requestId: string
  readonly caller: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly keyword?: string
  readonly error?: string
  readonly millis: number
  readonly workflows: readonly string[]
  readonly operations?: JsonValue
}

export interface StoredJournalRow extends JournalRow {
  /** Grows from row to row. */
  readonly id: number
  readonly journal: string
}

export interface JournalBatch {
  readonly journal: string
  /** Rows that stay; older ones of the journal are deleted. */
  readonly keep: number
  readonly rows: readonly JournalRow[]
}

export interface JournalQuery {
  /** All that are given must hold. An empty list matches nothing. */
  readonly journals?: readonly string[]
  /** Only rows with a status of 400 or above. */
  readonly failed?: boolean
  readonly status?: number
  /** From this time on. */
  readonly since?: Date
  /** Continues behind a page: the `next` it came with. */
  readonly after?: string
  /** At most 500 rows come back, whatever is asked. */
  readonly limit: number
}

export interface JournalPage {
  /** Latest first. */
  readonly entries: readonly StoredJournalRow[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

export interface JournalStore {
  /** Adds to journals and deletes what they no longer keep: all of it or nothing. */
  append(batches: readonly JournalBatch[]): Promise<void>
  /** Throws BAD_REQUEST for an `after` that no page gave. */
  list(query: JournalQuery): Promise<JournalPage>
}
