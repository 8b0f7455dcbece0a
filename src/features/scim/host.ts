import type { UserDirectory, UserDirectoryOptions } from '#identity/user-directory.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { WorkflowWrites } from '#sdk/flow/flow.ts'
import type { RunService } from '#workflows/runs/run-service.ts'
import type { EventStreams } from './events/event-streams.ts'
import type { Journals } from './journal/journals.ts'

/** What the filters of SCIM use beside what every filter may use. */
export interface ScimHost extends FilterHost {
  readonly runs: RunService
  /** What a workflow and those it calls write of their input. */
  workflowWrites(workflow: string): WorkflowWrites
  /** Opens users and groups in Gatehouse's own database, or in another one. The caller closes it. */
  openUserDirectory(options: UserDirectoryOptions): Promise<UserDirectory>
  /** In which an API records the calls it answered. */
  readonly journals: Pick<Journals, 'open' | 'list'>
  readonly eventStreams: Pick<EventStreams, 'open' | 'poll'>
}
