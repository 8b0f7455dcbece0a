import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { JournalEntry, JournalPage, JournalQuery } from './journal-entry.ts'

/** The name and size of a journal. */
export interface JournalOptions {
  /** Modules that open the same name share one journal. */
  readonly name: string
  /** How many of the latest entries stay. */
  readonly keep: number
}

/** A bounded list of the latest calls. */
export interface Journal {
  /** Never throws and never waits. The entry is written within a second, so a crash may lose that second. */
  add(entry: JournalEntry): void
  /** Writes the entries that were added. */
  close(): Promise<void>
}

/** Throws BAD_REQUEST for an `after` that isn't the `next` of a page. */
/** What the filter that shows the journals uses beside what every filter may use. */
export interface JournalHost extends FilterHost {
  readonly readJournal: ReadJournal
}

export type ReadJournal = (query: JournalQuery) => Promise<JournalPage>
