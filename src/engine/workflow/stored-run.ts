import type { ClaimedRun } from '#domain/run.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { restoreRun } from '#engine/workflow/saved-run.ts'
import type { RunSealer } from '#engine/workflow/stored-form.ts'

/** A run as it was put down, without what it waited for. Throws WORKFLOW_FAILED for one that cannot be read. */
export async function restoreStoredRun(run: ClaimedRun, sealer: RunSealer): Promise<RunProgress> {
  const { id, name, subject, requestor, caller, who, reason, requestId, data } = run
  const secret = await sealer.open(run.secret)
  const head = {
    id,
    workflow: name,
    subject,
    requestor,
    who,
    ...(caller === undefined ? {} : { caller }),
    ...(reason === undefined ? {} : { reason }),
    ...(requestId === undefined ? {} : { requestId }),
  }
  return restoreRun(head, secret === undefined ? { data } : { data, secret })
}
