import type { Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

/** The application, user and session to issue tokens for. */
export interface TokenMinting {
  readonly issuer: string
  /** By its name or its client id. */
  readonly trust: string
  readonly subject: Subject
  /** The session that the tokens end with. */
  readonly sessionId: string
  readonly authenticated: Date
  /** Why they are issued, for the audit. */
  readonly how: 'login' | 'token page'
  /** The `https://host[:port]` of the issuer; the request's own if absent. */
  readonly origin?: string | undefined
  readonly request: Pick<GatewayRequest, 'id' | 'origin' | 'remoteAddress'>
}

/** Tokens issued for an application. */
export interface MintedTokens {
  readonly issuer: string
  readonly clientId: string
  readonly idToken: string
  readonly expires: Date
  readonly claims: JsonObject
  readonly refreshToken?: string
  readonly refreshExpires?: Date
}

/** The state of a refresh token. */
export type RefreshTokenState = 'unused' | 'used' | 'ended'
