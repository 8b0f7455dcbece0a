import type { AuditEntry } from '#domain/audit.ts'
import { changeName as name } from '#engine/passwords/password-audit.ts'
import { endedRows } from '#engine/session/session-end-audit.ts'
import { storedIdentity } from '#identity/identity.ts'
import { newId } from '#kernel/ids.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { ChangeClaim, ChangeOutcome, PasswordChangeStore } from '#storage/password-change-store.ts'

const atOnce = 100

/**
 * Ends sessions for passwords that were being written when a process ended; returns the number of changes. With `all`, no
 * other process is running, so nothing is waited for.
 */
export async function settleAbandoned(
  store: PasswordChangeStore,
  which: 'expired' | 'all' = 'expired',
): Promise<number> {
  const claims = await store.abandoned(atOnce, which)
  for (const claim of claims) await store.release(claim, unknownOutcome(claim))
  return claims.length
}

/** No one knows whether the password was written, so sessions end as if it was. */
export function unknownOutcome({ id, owner, data }: ChangeClaim): ChangeOutcome {
  const login = typeof data['login'] === 'string' ? data['login'] : 'unknown'
  const cause = { workflow: runOf(data['run']) ?? { id, name }, requestor: 'gatehouse' }
  const owners = data['owners'] === undefined ? [owner] : textsOf(data['owners']).map(storedIdentity)
  const row: AuditEntry = {
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
      owners,
      logins: textsOf(data['logins']),
      ...(typeof data['session'] === 'string' ? { exceptPublicId: data['session'] } : {}),
      audit: (ended) => endedRows(ended, cause),
    },
    audit: [row],
  }
}

const textsOf = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((text) => typeof text === 'string') : []

/** The workflow run that wrote the password, where it was one. */
function runOf(value: JsonValue | undefined): AuditEntry['workflow'] | undefined {
  const { id, name: workflow } = isJsonObject(value) ? value : {}
  return typeof id === 'string' && typeof workflow === 'string' ? { id, name: workflow } : undefined
}
