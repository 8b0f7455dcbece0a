import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { EndedSession } from './session.ts'

type Cause = Pick<AuditEntry, 'workflow' | 'requestor'> & Partial<Pick<AuditEntry, 'caller' | 'requestId' | 'reason'>>

/** An audit row for each session that was ended; without a reason, because its owner's password was changed. */
export function endedRows(ended: readonly EndedSession[], cause: Cause, time = new Date()): AuditEntry[] {
  return ended.map(({ publicId, application, userID }) => ({
    id: newId(),
    time,
    ...cause,
    subject: userID,
    target: application,
    kind: 'session',
    action: 'delete',
    attribute: 'login',
    value: publicId,
    reason: cause.reason ?? 'password changed',
  }))
}
