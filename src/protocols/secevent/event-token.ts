import type { KeyObject } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import type { JsonObject } from '#kernel/json.ts'
import { publishedKey } from '#protocols/jwt/signing.ts'

export const eventTokenType = 'application/secevent+jwt'

export interface EventClaims {
  readonly issuer: string
  readonly audience: string
  readonly id: string
  readonly issued: Date
  readonly transaction: string
  /** `sub_id` of RFC 9493. */
  readonly subject: JsonObject
  readonly events: JsonObject
}

/** The claims of a Security Event Token (RFC 8417 2.2). It has no `sub` and no `exp`: what happened does not expire. */
export const eventClaims = (event: EventClaims): JsonObject => ({
  iss: event.issuer,
  aud: event.audience,
  iat: Math.floor(event.issued.getTime() / 1000),
  jti: event.id,
  txn: event.transaction,
  sub_id: event.subject,
  events: event.events,
})

/** Signed with RS256. The same claims and key give the same token. */
export async function signEventToken(
  claims: JsonObject,
  keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
): Promise<string> {
  const { kid } = await publishedKey(keys.publicKey)
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: 'RS256', typ: 'secevent+jwt', ...(kid === undefined ? {} : { kid }) })
    .sign(keys.privateKey)
}
