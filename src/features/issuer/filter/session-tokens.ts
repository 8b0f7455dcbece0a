import { createHash } from 'node:crypto'
import type { MintedTokens } from '#features/issuer/service/token-minting.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** Tokens of an own issuer in a session, with the data for creating new ones. */
export interface SessionTokens extends MintedTokens {
  /** The identity provider and the trust, as the configuration names them. */
  readonly idp: string
  readonly trust: string
  /** Present if the issuer has another origin than the requests. */
  readonly origin?: string
  /** The companion session that they end with; absent if they end with the session that they are in. */
  readonly companion?: string
}

/** The slot that names the slot of the latest tokens. */
export const latestTokensSlot = 'auth.GenerateOIDCTokens'

/** The slot for the tokens of one trust; names of trusts may be addresses. */
export const tokensSlot = (idp: string, trust: string): string =>
  `${latestTokensSlot}:${createHash('sha256')
    .update(JSON.stringify([idp, trust]))
    .digest('hex')
    .slice(0, 32)}`

/** What tokens are for, where no session can hold them until someone reads them. */
export type RequestedTokens = Pick<SessionTokens, 'idp' | 'trust' | 'origin'>

export const storeRequest = ({ idp, trust, origin }: RequestedTokens): JsonObject => ({
  idp,
  trust,
  ...(origin === undefined ? {} : { origin }),
})

export function restoreRequest(value: JsonValue | undefined): RequestedTokens | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined
  const { idp, trust, origin } = value
  if (typeof idp !== 'string' || typeof trust !== 'string') return undefined
  return { idp, trust, ...(typeof origin === 'string' ? { origin } : {}) }
}

export function storeTokens(tokens: SessionTokens): JsonObject {
  const { expires, refreshExpires, ...rest } = tokens
  return {
    ...rest,
    expires: expires.getTime(),
    ...(refreshExpires === undefined ? {} : { refreshExpires: refreshExpires.getTime() }),
  }
}

/** Undefined for a value of another format, as after a change of format. */
export function restoreTokens(value: JsonValue | undefined): SessionTokens | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined
  const { idp, trust, issuer, clientId, idToken, expires, claims, refreshToken, refreshExpires, origin, companion } =
    value
  if (typeof idp !== 'string' || typeof trust !== 'string' || typeof issuer !== 'string') return undefined
  if (typeof clientId !== 'string' || typeof idToken !== 'string' || typeof expires !== 'number') return undefined
  if (claims === undefined || !isJsonObject(claims)) return undefined
  return {
    idp,
    trust,
    issuer,
    clientId,
    idToken,
    claims,
    expires: new Date(expires),
    ...(typeof refreshToken === 'string' ? { refreshToken } : {}),
    ...(typeof refreshExpires === 'number' ? { refreshExpires: new Date(refreshExpires) } : {}),
    ...(typeof origin === 'string' ? { origin } : {}),
    ...(typeof companion === 'string' ? { companion } : {}),
  }
}
