import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { ClientToken } from './client-token.ts'

/** A change of a token, without its text. */
export const tokenAudit = (
  action: 'add' | 'replace' | 'delete',
  { id, client, name }: Pick<ClientToken, 'id' | 'client' | 'name'>,
  by: Pick<AuditEntry, 'requestor' | 'requestId' | 'reason'>,
): AuditEntry => ({
  id: newId(),
  time: systemClock(),
  ...by,
  subject: client,
  workflow: { id, name: 'scim token' },
  target: 'gatehouse',
  kind: 'entry',
  action,
  attribute: 'scimToken',
  value: name,
})
