import { decodeJwt } from 'jose/jwt/decode'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import type { KeySet } from '#protocols/jwt/key-set.ts'
import { createTokenVerifier, TokenRejected, type TokenVerifier } from '#protocols/jwt/token-verifier.ts'

export interface LogoutClient {
  readonly issuer: string
  readonly clientId: string
}

export type LogoutToken = { readonly kind: 'sid' | 'sub'; readonly value: string }

const event = 'http://schemas.openid.net/event/backchannel-logout'
const rememberedTokens = 10_000

/** Reads logout tokens (OpenID Connect Back-Channel Logout 1.0, section 2.6). */
export class LogoutTokens {
  readonly #client: LogoutClient
  readonly #verifier: TokenVerifier
  readonly #seen: BoundedCache<true>

  constructor(client: LogoutClient, keys: KeySet, clock: Clock) {
    this.#client = client
    const rules = { issuer: client.issuer, audiences: [client.clientId], allowNoIat: false, notBeforeMinutes: 0 }
    this.#verifier = createTokenVerifier(rules, keys, clock)
    this.#seen = new BoundedCache(rememberedTokens, clock)
  }

  /** Whether the token claims to be for this client; several clients may share an address. Nothing is verified. */
  isOurs(token: string): boolean {
    try {
      const { iss, aud } = decodeJwt(token)
      return iss === this.#client.issuer && [aud].flat().includes(this.#client.clientId)
    } catch {
      return false
    }
  }

  /** Whose sessions end. Throws TokenRejected, and TARGET_UNREACHABLE when the issuer's keys cannot be had. */
  async read(token: string): Promise<LogoutToken> {
    const { claims, expires } = await this.#verifier.verify(token)
    const { events, nonce, jti, sid, sub } = claims
    if (typeof events !== 'object' || events === null || !Object.hasOwn(events, event)) {
      throw refused('the token has no logout event')
    }
    if (nonce !== undefined) throw refused('an id_token is not a logout token')
    if (typeof jti !== 'string' || jti === '') throw refused('the token has no jti')
    if (this.#seen.get(jti) !== undefined) throw refused('the token was used before')
    const named = { sid, sub }
    for (const kind of ['sid', 'sub'] as const) {
      const value = named[kind]
      if (value === undefined) continue
      if (typeof value !== 'string' || value === '') throw refused(`"${kind}" is not a text`)
      this.#seen.set(jti, true, expires)
      return { kind, value }
    }
    throw refused('the token names neither a session nor a person')
  }
}

const refused = (reason: string): TokenRejected => new TokenRejected(reason, 'The token is not valid')
