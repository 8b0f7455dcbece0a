import type { JsonValue } from '#kernel/json.ts'

/** One call to an API as its operator sees it afterwards: names, paths and counts, never a password, token or body. */
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
  /** The protocol's own word for the error, such as SCIM's scimType. */
  readonly keyword?: string
  /** What the client was told of the error. */
  readonly error?: string
  readonly millis: number
  /** Ids of the workflow runs, as in the audit. */
  readonly workflows: readonly string[]
  /** The change as it was understood. */
  readonly operations?: JsonValue
}

export interface JournalOptions {
  /** Those who open the same name share one journal. */
  readonly name: string
  /** How many of the latest calls stay. */
  readonly keep: number
}

export interface Journal {
  /** Never throws and never waits: what is added is written within a second, and a crash may lose that second. */
  add(entry: JournalEntry): void
  /** Writes what waits. */
  close(): Promise<void>
}

export interface JournalQuery {
  /** All that are given must hold. An empty list matches nothing. */
  readonly journals?: readonly string[]
  /** Only calls that were answered with 400 or above. */
  readonly failed?: boolean
  readonly status?: number
  /** From this time on. */
  readonly since?: Date
  /** Continues behind a page: the `next` it came with. */
  readonly after?: string
  /** At most 500 come back, whatever is asked. */
  readonly limit: number
}

export interface JournalLine extends JournalEntry {
  /** Grows from line to line. */
  readonly id: number
  readonly journal: string
}

export interface JournalPage {
  /** Latest first. */
  readonly entries: readonly JournalLine[]
  /** Where the following page starts; absent on the last one. */
  readonly next?: string
}

/** Throws BAD_REQUEST for an `after` that no page gave. */
export type ReadJournal = (query: JournalQuery) => Promise<JournalPage>
