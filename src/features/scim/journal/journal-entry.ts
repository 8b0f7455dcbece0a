import type { JsonValue } from '#kernel/json.ts'

/** One call to an API, for its operator: names, paths and counts, never a password, token or body. */
export interface JournalEntry {
  /** When the call began. */
  readonly time: Date
  readonly requestId: string
  /** The uid of the authenticated caller. */
  readonly caller: string
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly status: number
  /** The protocol's keyword for the error, such as SCIM's scimType. */
  readonly keyword?: string
  /** The error text of the response. */
  readonly error?: string
  readonly millis: number
  /** Ids of the workflow runs, as in the audit. */
  readonly workflows: readonly string[]
  /** The parsed change. */
  readonly operations?: JsonValue | undefined
  /** The call only showed what it would do. */
  readonly dryRun?: true | undefined
}

export interface StoredJournalEntry extends JournalEntry {
  /** Increases from entry to entry. */
  readonly id: number
  readonly journal: string
}

/** Entries match all conditions that are present. */
export interface JournalQuery {
  /** An empty list matches nothing. */
  readonly journals?: readonly string[]
  /** Only calls with a status of 400 or above. */
  readonly failed?: boolean
  readonly status?: number | undefined
  /** From this time on. */
  readonly since?: Date | undefined
  /** The `next` of the previous page. */
  readonly after?: string | undefined
  /** At most 500 entries per page. */
  readonly limit: number
}

export interface JournalPage {
  /** Latest first. */
  readonly entries: readonly StoredJournalEntry[]
  /** Where the next page starts; absent on the last page. */
  readonly next?: string
}
