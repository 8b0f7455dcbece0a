import type { IssuerAccount } from '#engine/issuer/issuer-account.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { GatewayRequest } from '#sdk/filter/http.ts'
import type { AuditStore } from '#storage/audit/audit-store.ts'

export interface IssuerAuditParts {
  readonly audit: Pick<AuditStore, 'append'>
  readonly clock: Clock
  readonly log: Logger
}

export interface TokenEvent {
  readonly issuer: string
  readonly request: Pick<GatewayRequest, 'id' | 'remoteAddress'>
  readonly account: Pick<IssuerAccount, 'uid' | 'sub'>
  readonly clientId: string
  /** How they were asked for: a grant type, `login`, `token page`. */
  readonly how: string
  readonly jti?: string | undefined
}

/** A row for the tokens that an issuer gives, and for the people whom its rules keep out. */
export class IssuerAudit {
  readonly #parts: IssuerAuditParts

  constructor(parts: IssuerAuditParts) {
    this.#parts = parts
  }

  /** Rejects when the row could not be written; then no token may leave. */
  async issued(event: TokenEvent): Promise<void> {
    await this.#append('issue', event)
  }

  /** The refusal stands whether or not it could be written down. */
  refused(event: TokenEvent): Promise<void> {
    return this.#note('refuse', event)
  }

  /** A session that an application asked to end. */
  ended(event: Pick<TokenEvent, 'issuer' | 'request' | 'account'>): Promise<void> {
    return this.#note('delete', { ...event, clientId: '', how: 'logout' })
  }

  async #note(action: 'refuse' | 'delete', event: TokenEvent): Promise<void> {
    try {
      await this.#append(action, event)
    } catch (err) {
      this.#parts.log.warn('an issuer event was not written to the audit; it is only in this log', {
        err,
        requestId: event.request.id,
      })
    }
  }

  async #append(
    action: 'issue' | 'refuse' | 'delete',
    { issuer, request, account, clientId, how, jti }: TokenEvent,
  ): Promise<void> {
    const { audit, clock } = this.#parts
    await audit.append([
      {
        id: newId(),
        time: clock(),
        requestor: account.uid,
        subject: account.uid,
        workflow: { id: request.id, name: `idp ${issuer}` },
        target: clientId,
        kind: action === 'delete' ? 'session' : 'token',
        action,
        attribute: action === 'delete' ? 'login' : 'jti',
        ...(jti === undefined ? {} : { value: jti }),
        requestId: request.id,
        reason: JSON.stringify({ how, sub: account.sub, remote: request.remoteAddress }),
      },
    ])
  }
}
