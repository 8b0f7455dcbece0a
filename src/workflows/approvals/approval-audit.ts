import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Approval } from '#workflows/record/approval.ts'

/** The target that audit entries name for Gatehouse's own records. */
export const ownTarget = 'gatehouse'

/** Who acted on an approval. A deputy is the caller, on behalf of the requester. */
export interface Actor {
  readonly requester: string
  readonly caller?: string | undefined
  readonly reason?: string | undefined
  readonly requestId?: string | undefined
}

/** The actor of timers and reminders. */
export const gatewayActor: Actor = { requester: ownTarget }

/** `value` says what happened: `approved`, `denied`, `escalated to …`. */
export const approvalRow = (
  { id, run }: Approval,
  { requester, ...actor }: Actor,
  time: Date,
  value: string,
): AuditEntry => ({
  id: newId(),
  time,
  requestor: requester,
  ...actor,
  subject: run.subject,
  workflow: { id: run.id, name: run.workflow },
  target: ownTarget,
  kind: 'entry',
  action: 'replace',
  attribute: 'approval',
  value,
  approval: id,
})

const shownLogins = 20

/** For the audit: the first logins, and how many more. */
export function loginsText(logins: readonly string[]): string {
  const more = logins.length - shownLogins
  return `${logins.slice(0, shownLogins).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
