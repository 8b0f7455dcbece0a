import { changeName as name } from '#engine/passwords/password-audit.ts'
import { endedRows } from '#engine/session/session-end-audit.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditRow } from '#storage/audit-store.ts'
import type { ChangeClaim, ChangeOutcome, PasswordChangeStore } from '#storage/password-change-store.ts'

/** Ends sessions for passwords that were being written when a process ended; returns the number of changes. */
export async function settleAbandoned(store: PasswordChangeStore, limit = 100): Promise<number> {
  const claims = await store.abandoned(limit)
  for (const claim of claims) await store.release(claim, unknownOutcome(claim))
  return claims.length
}

/** No one knows whether the password was written, so sessions end as if it was. */
export function unknownOutcome({ id, owner, data }: ChangeClaim): ChangeOutcome {
  const login = typeof data['login'] === 'string' ? data['login'] : 'unknown'
  const cause = { workflow: { id, name }, requestor: 'gatehouse' }
  const row: AuditRow = {
    id: newId(),
    time: new Date(),
    ...cause,
    subject: login,
    target: 'gatehouse',
    kind: 'attribute',
    action: 'replace',
    attribute: 'password',
    reason: 'outcome unknown: no answer came back after the password was sent',
  }
  return {
    ending: {
      owners: [owner],
      logins: [],
      ...(typeof data['session'] === 'string' ? { exceptPublicId: data['session'] } : {}),
      audit: (ended) => endedRows(ended, cause),
    },
    audit: [row],
  }
}
