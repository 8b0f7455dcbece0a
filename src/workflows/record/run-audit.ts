import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'

/** What every audit entry of a run has of its head. */
export const auditedRun = ({
  id,
  workflow,
  requester,
  caller,
  requestId,
}: RunHead): Pick<AuditEntry, 'workflow' | 'requestor' | 'caller' | 'requestId'> => ({
  workflow: { id, name: workflow },
  requestor: requester,
  caller: caller === requester ? undefined : caller,
  requestId,
})
