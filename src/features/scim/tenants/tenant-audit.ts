import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'

/** A tenant that was added or deleted, or a field of it that was changed. */
export const tenantAudit = (
  action: 'add' | 'replace' | 'delete',
  [attribute, value]: readonly [attribute: 'scimTenant' | 'disabled', value: string],
  name: string,
  by: Pick<AuditEntry, 'requestor' | 'requestId' | 'reason'>,
): AuditEntry => ({
  id: newId(),
  time: systemClock(),
  ...by,
  subject: name,
  workflow: { id: name, name: 'scim tenant' },
  target: 'gatehouse',
  kind: attribute === 'scimTenant' ? 'entry' : 'attribute',
  action,
  attribute,
  value,
})
