import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { WorkflowWrites } from '#sdk/flow/flow.ts'
import type { ApprovalAccess } from '#workflows/approvals/approval-access.ts'
import type { RunAccess } from '#workflows/record/run-access.ts'

/** What the APIs of workflows use beside what every filter may use. */
export interface CallHost extends FilterHost {
  readonly runs: RunAccess
  readonly approvals: ApprovalAccess
  /** The request parameters that a workflow and those it calls accept; undefined for an unknown workflow. */
  workflowParameters(name: string): ReadonlySet<string> | undefined
  /** What they write of their input. */
  workflowWrites(workflow: string): WorkflowWrites
}
