import { AuditTrail } from '#engine/provisioning/audit-trail.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'

/** A trail for what the run does from here on. */
export function auditTrail(state: RunProgress, audit: Pick<AuditStore, 'appendWithin'>): AuditTrail {
  const { id, workflow: name, requestor, caller, reason, requestId, approval } = state
  return new AuditTrail(
    {
      workflow: { id, name },
      requestor,
      ...(caller === undefined || caller === requestor ? {} : { caller }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(approval === undefined ? {} : { approval }),
      ...(reason === undefined ? {} : { reason }),
    },
    audit,
  )
}
