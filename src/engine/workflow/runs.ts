import type { RunAccess } from '#sdk/runs.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'
import type { NewRun } from '#storage/runs/run-commit.ts'

/** What the parts of the engine may ask of runs. */
export interface Runs extends RunAccess {
  /** Stored, or executed, as the call says. */
  run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult>
  /**
   * A run that is to be stored by somebody else's transaction, as `RunEffects.starts`. Its definition is saved already.
   * Throws NOT_SUPPORTED when there is no workflow of that name.
   */
  prepare(call: WorkflowCall): Promise<NewRun>
}
