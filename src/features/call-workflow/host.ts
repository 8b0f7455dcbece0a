import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { WorkflowWrites } from '#sdk/flow/flow.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { RunService } from '#workflows/runs/run-service.ts'

/** What the APIs of workflows use beside what every filter may use. */
export interface CallHost extends FilterHost {
  readonly runs: RunService
  readonly approvals: ApprovalDesk
  /** The request parameters that a workflow and those it calls accept; undefined for an unknown workflow. */
  workflowParameters(name: string): ReadonlySet<string> | undefined
  /** What they write of their input. */
  workflowWrites(workflow: string): WorkflowWrites
}
