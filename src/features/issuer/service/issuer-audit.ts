import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import type { IssuerAccount } from './issuer-account.ts'

export interface IssuerAuditParts {
  readonly audit: Pick<AuditStore, 'append'>
  readonly clock: Clock
  readonly log: Logger
}

interface TokenEvent {
  readonly issuer: string
  readonly request: Pick<GatewayRequest, 'id' | 'remoteAddress'>
  readonly account: Pick<IssuerAccount, 'uid' | 'sub'>
  readonly clientId: string
  /** How they were requested: a grant type, `login`, `token page`. */
  readonly how: string
  readonly jti?: string | undefined
  /** The login of the caller, if it isn't the user. */
  readonly requester?: string | undefined
  /** What else the row says, without any part of a token. */
  readonly detail?: JsonObject
}

/** Audit rows for issued tokens, and for users that the issuer's rules reject. */
export class IssuerAudit {
  readonly #parts: IssuerAuditParts

  constructor(parts: IssuerAuditParts) {
    this.#parts = parts
  }

  /** Rejects if the row could not be written; then no token may be issued. */
  async issued(event: TokenEvent): Promise<void> {
    await this.#append('issue', event)
  }

  /** The refusal is final, even if it could not be audited. */
  refused(event: TokenEvent): Promise<void> {
    return this.#note('refuse', event)
  }

  /** A session that an application ended. */
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
    { issuer, request, account, clientId, how, jti, requester, detail }: TokenEvent,
  ): Promise<void> {
    const { audit, clock } = this.#parts
    await audit.append([
      {
        id: newId(),
        time: clock(),
        requestor: requester ?? account.uid,
        subject: account.uid,
        workflow: { id: request.id, name: `idp ${issuer}` },
        target: clientId,
        kind: action === 'delete' ? 'session' : 'token',
        action,
        attribute: action === 'delete' ? 'login' : 'jti',
        ...(jti === undefined ? {} : { value: jti }),
        requestId: request.id,
        reason: JSON.stringify({ how, sub: account.sub, ...detail, remote: request.remoteAddress }),
      },
    ])
  }
}

/** Labels come from the configuration or from a list in the code. */
export interface IssuerMeter {
  /** `how`: a grant type, `login` or `token page`; `outcome`: `issued`, `pending` (a device waits), `refused`, `failed`. */
  tokens(issuer: string, how: string, outcome: string): void
  answered(issuer: string, endpoint: string, millis: number): void
}

export const noIssuerMeter: IssuerMeter = { tokens: () => {}, answered: () => {} }

const endpoints = new Map([
  ['/auth', 'authorization'],
  ['/token', 'token'],
  ['/userinfo', 'userinfo'],
  ['/certs', 'keys'],
  ['/revoke', 'revocation'],
  ['/introspect', 'introspection'],
  ['/device/auth', 'device authorization'],
  ['/device', 'device'],
  ['/session/end', 'logout'],
  ['/session/end/confirm', 'logout'],
  ['/session/end/success', 'logout'],
  ['/.well-known/openid-configuration', 'discovery'],
  ['/.well-known/oauth-authorization-server', 'discovery'],
])
/** Where users continue after a login. */
const steps = /^\/(?:auth|device|interaction)\/[\w-]{1,64}$/

/** Whether the issuer serves the path, compared exactly. */
export const isEndpoint = (path: string): boolean => endpoints.has(path) || steps.test(path)

export const endpointOf = (path: string): string => endpoints.get(path) ?? 'other'

const grants = new Map([
  ['authorization_code', 'authorization_code'],
  ['refresh_token', 'refresh_token'],
  ['urn:ietf:params:oauth:grant-type:device_code', 'device_code'],
  [tokenExchangeGrant, 'token_exchange'],
])

export const grantOf = (grantType: string): string => grants.get(grantType) ?? 'other'

const waiting = new Set(['authorization_pending', 'slow_down'])

/** The outcome for a status and body of the token endpoint. */
export function tokenOutcome(status: number, body: unknown): string {
  if (status === 200) return 'issued'
  if (status >= 500) return 'failed'
  if (status === 429) return 'refused'
  return waiting.has(errorIn(body)) ? 'pending' : 'refused'
}

function errorIn(body: unknown): string {
  try {
    const { error } = JSON.parse(String(body)) as { readonly error?: unknown }
    return typeof error === 'string' ? error : ''
  } catch {
    return ''
  }
}
