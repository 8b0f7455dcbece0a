import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { WorkflowWrites } from '#sdk/flow/flow.ts'
import type { RunAccess } from '#workflows/record/run-access.ts'
import type { EventStream, EventStreamOptions, PollHost } from './events/event-stream.ts'
import type { Journal, JournalHost, JournalOptions } from './journal/journal.ts'

/** What the filters of SCIM use beside what every filter may use. */
export interface ScimHost extends JournalHost, PollHost {
  readonly runs: RunAccess
  /** What a workflow and those it calls write of their input. */
  workflowWrites(workflow: string): WorkflowWrites
  /** Opens users and groups in Gatehouse's own database, or in another one. The caller closes it. */
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
  /** Opens the journal in which an API records the calls it answered. The caller closes it. */
  openJournal(options: JournalOptions): Journal
  /** Opens a stream that delivers events to receivers, durably and in order. The caller closes it. */
  openEventStream(options: EventStreamOptions): EventStream
}
