import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Approval } from '#workflows/record/approval.ts'

/** The target that audit entries name for Gatehouse's own records. */
export const ownTarget = 'gatehouse'

/** Who acted on an approval. A deputy is the caller, on behalf of the requestor. */
export interface Actor {
  readonly requestor: string
  readonly caller?: string
  readonly reason?: string
  readonly requestId?: string
}

/** The actor of timers and reminders. */
export const gatewayActor: Actor = { requestor: ownTarget }

/** `value` says what happened: `approved`, `denied`, `escalated to …`. */
export const approvalRow = ({ id, run }: Approval, actor: Actor, time: Date, value: string): AuditEntry => ({
  id: newId(),
  time,
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
