import { createHash, createPublicKey, type KeyObject } from 'node:crypto'

/** An alias, not an interface, so that it is a record of texts as well. */
export type PublishedRsaKey = {
  readonly kty: 'RSA'
  readonly use: 'sig'
  readonly alg: 'RS256'
  readonly kid: string
  readonly n: string
  readonly e: string
}

export type PublishedEcKey = {
  readonly kty: 'EC'
  readonly use: 'sig'
  readonly alg: 'ES256'
  readonly kid: string
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
}

const leastRsaBits = 2048
const mostRsaBits = 8192

/**
 * A key as it is published, with no member that a consumer refuses: Google takes no others, Amazon refuses `key_ops`. The
 * `kid` is the RFC 7638 thumbprint: it follows from the key alone. Throws an Error for a key that signs neither RS256
 * nor ES256.
 */
export function publicTokenKey(key: KeyObject): PublishedRsaKey | PublishedEcKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  const { kty, n, e, crv, x, y } = publicKey.export({ format: 'jwk' })
  if (kty === 'RSA' && n !== undefined && e !== undefined) {
    const bits = publicKey.asymmetricKeyDetails?.modulusLength ?? 0
    if (bits < leastRsaBits || bits > mostRsaBits) {
      throw new Error(`an RSA key of ${bits} bits; ${leastRsaBits} to ${mostRsaBits} are taken`)
    }
    return { kty, use: 'sig', alg: 'RS256', kid: thumbprint({ e, kty, n }), n, e }
  }
  if (kty === 'EC' && crv === 'P-256' && x !== undefined && y !== undefined) {
    return { kty, use: 'sig', alg: 'ES256', kid: thumbprint({ crv, kty, x, y }), crv, x, y }
  }
  throw new Error('tokens are signed with an RSA key or with one on the curve P-256')
}

/** RFC 7638: the members are given in the order of their names. */
const thumbprint = (members: Readonly<Record<string, string>>): string =>
  createHash('sha256').update(JSON.stringify(members)).digest('base64url')
