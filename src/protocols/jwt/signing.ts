import type { KeyObject } from 'node:crypto'
import type { JWK } from 'jose'
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { SignJWT } from 'jose/jwt/sign'
import { exportJWK } from 'jose/key/export'
import type { Clock } from '#kernel/clock.ts'
import type { JsonValue } from '#kernel/json.ts'

export interface TokenContent {
  readonly issuer: string
  readonly audience: string
  readonly subject: string
  /** Besides the registered claims, which these can't replace. */
  readonly claims: ReadonlyMap<string, JsonValue>
  readonly lifetimeSeconds: number
}

/** An RSA key for publication: exactly kty, n, e, use, alg and the RFC 7638 thumbprint as kid. */
export async function publishedKey(publicKey: KeyObject): Promise<JWK> {
  const { kty, n, e } = await exportJWK(publicKey)
  if (kty !== 'RSA' || n === undefined || e === undefined) throw new Error('only RSA keys sign tokens')
  return { kty, use: 'sig', alg: 'RS256', kid: await calculateJwkThumbprint({ kty, n, e }), n, e }
}

/** A JWT signed with RS256. */
export async function signToken(
  content: TokenContent,
  keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
  clock: Clock,
): Promise<string> {
  const { kid } = await publishedKey(keys.publicKey)
  const now = Math.floor(clock().getTime() / 1000)
  return new SignJWT(Object.fromEntries(content.claims))
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid === undefined ? {} : { kid }) })
    .setIssuer(content.issuer)
    .setAudience(content.audience)
    .setSubject(content.subject)
    .setIssuedAt(now)
    .setNotBefore(now)
    .setExpirationTime(now + content.lifetimeSeconds)
    .sign(keys.privateKey)
}
