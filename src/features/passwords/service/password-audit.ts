import type { AuditStore } from '#audit/store/audit-store.ts'
import { storedIdentity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { ChangeClaim, ChangeOutcome, PasswordChangeStore } from '#requests/login/password-change-store.ts'
import { endedRows } from '#requests/sessions/session-end-audit.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

export interface PasswordAuditParts {
  readonly audit: AuditStore
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
}

export type Asker = Pick<GatewayRequest, 'id' | 'remoteAddress'>

type What = Pick<AuditEntry, 'kind' | 'action' | 'attribute'> &
  Partial<Pick<AuditEntry, 'target' | 'requestor' | 'workflow'>>

/** A reset link, for the audit. Anyone can request or try one, so the requester is not known. */
export const resetLink = { kind: 'token', attribute: 'password reset link', requestor: 'anonymous' } as const

/** Takes the place of a workflow's name in the audit. */
export const changeName = 'password'
/** Anyone can send requests for unknown users and unusable links: beyond this number they are only logged. */
const strangers = { burst: 100, perMinute: 600 }

export const causeOf = (
  id: string,
  login: string,
  request: Asker,
): Pick<AuditEntry, 'workflow' | 'requestor' | 'requestId'> => ({
  workflow: { id, name: changeName },
  requestor: login,
  requestId: request.id,
})

/** Audit rows about passwords that users set themselves. */
export class PasswordAudit {
  readonly #parts: PasswordAuditParts

  constructor(parts: PasswordAuditParts) {
    this.#parts = parts
  }

  /** For what has been refused already: a row that can't be written is only logged. */
  async refuse(login: string, reason: string, request: Asker): Promise<void> {
    const { audit, rateLimits, log } = this.#parts
    log.info('password reset refused', { login, reason, requestId: request.id, remote: request.remoteAddress })
    const row = { ...resetLink, action: 'refuse' } as const
    try {
      if ((await rateLimits.take('refused password resets', '', strangers)) !== undefined) return
      await audit.append([this.row(login, request, row, reason)])
    } catch (err) {
      log.warn('a refused password reset is in the log only', { err, requestId: request.id })
    }
  }

  row(login: string, request: Asker, what: What, reason?: string): AuditEntry {
    const details = { address: request.remoteAddress, ...(reason === undefined ? {} : { reason }) }
    return {
      id: newId(),
      time: this.#parts.clock(),
      ...causeOf('', login, request),
      subject: login,
      target: 'gatehouse',
      ...what,
      reason: JSON.stringify(details),
    }
  }
}

const atOnce = 100

/**
 * Ends sessions for passwords that were being written when a process ended; returns the number of changes. With
 * `all`, no other process is running, so it does not wait.
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
  const cause = { workflow: runOf(data['run']) ?? { id, name: changeName }, requestor: 'gatehouse' }
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

/** The workflow run that wrote the password, if there was one. */
function runOf(value: JsonValue | undefined): AuditEntry['workflow'] | undefined {
  const { id, name: workflow } = isJsonObject(value) ? value : {}
  return typeof id === 'string' && typeof workflow === 'string' ? { id, name: workflow } : undefined
}
