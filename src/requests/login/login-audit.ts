import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'

interface LoginAuditParts {
  readonly audit: Pick<AuditStore, 'append'>
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
}

export interface LoginEvent {
  readonly action: 'issue' | 'refuse' | 'delete'
  readonly request: Pick<GatewayRequest, 'id' | 'headers' | 'host' | 'remoteAddress'>
  /** The login, or a placeholder for an unknown user. */
  readonly login: string
  readonly chain: string
  readonly application: string
  readonly sessionId?: string
  readonly reason?: string
  /** The actor, if that is not the login itself. */
  readonly by?: string
}

/** Anonymous callers can cause failed logins, and must not fill the audit: beyond this number they are only logged. */
const strangers = { burst: 100, perMinute: 600 }
const longest = 200

/** A row for each login, failed login and logout. */
export class LoginAudit {
  readonly #parts: LoginAuditParts

  constructor(parts: LoginAuditParts) {
    this.#parts = parts
  }

  /** Rejects if the row could not be written; then the login must fail. */
  async write(event: LoginEvent): Promise<void> {
    await this.#parts.audit.append([this.#row(event)])
  }

  /** For what has happened already: a row that can't be written is logged. */
  async note(event: LoginEvent): Promise<void> {
    const { rateLimits, log } = this.#parts
    const { action, login, chain, request, reason } = event
    log.info(action === 'refuse' ? 'login refused' : 'session ended', {
      login: login.slice(0, longest),
      chain,
      remote: request.remoteAddress,
      requestId: request.id,
      reason,
    })
    try {
      const isFree = action !== 'refuse' || (await rateLimits.take('refused logins', '', strangers)) === undefined
      if (!isFree) return
      await this.write(event)
    } catch (err) {
      log.warn('a login was not written to the audit; it is only in this log', { err, requestId: request.id })
    }
  }

  #row({ action, request, login, chain, application, sessionId = '', reason, by }: LoginEvent): AuditEntry {
    const who = clean(login)
    const details = {
      address: request.remoteAddress,
      agent: clean(header(request, 'user-agent') ?? ''),
      ...(reason === undefined ? {} : { reason: clean(reason) }),
    }
    return {
      id: newId(),
      time: this.#parts.clock(),
      requestor: by ?? who,
      subject: who,
      workflow: { id: sessionId, name: chain },
      target: application,
      kind: 'session',
      action,
      attribute: 'login',
      requestId: request.id,
      reason: JSON.stringify(details),
    }
  }
}

const clean = (text: string): string => text.slice(0, longest).toWellFormed().replaceAll('\0', '\ufffd')

/**
 * `begun`, `signed-in`, `refused`, `failed` (a try), `locked` (an unchecked try), `signed-out`, `ended` (its owner
 * is gone).
 */
export interface LoginMeter {
  counted(chain: string, outcome: string): void
}

export const noLoginMeter: LoginMeter = { counted: () => {} }
