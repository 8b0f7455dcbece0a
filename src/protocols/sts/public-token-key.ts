import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { signingAlgorithm, type TokenAlgorithm } from '#kernel/signing-key.ts'

/** An alias, not an interface, so that it is a record of texts as well. */
export type PublishedKey = {
  readonly kty: string
  readonly use: 'sig'
  readonly alg: TokenAlgorithm
  readonly kid: string
} & Readonly<Record<string, string>>

/** The members of a key that are published, by its type, in the order of their names as RFC 7638 hashes them. */
const members: Readonly<Record<string, readonly ('crv' | 'e' | 'kty' | 'n' | 'x' | 'y')[]>> = {
  RSA: ['e', 'kty', 'n'],
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
}

/**
 * A key as it is published, with no member that a consumer refuses: Google takes no others, Amazon refuses `key_ops`. The
 * `kid` is the RFC 7638 thumbprint: it follows from the key alone. Throws an Error for a key that signs no tokens.
 */
export function publicTokenKey(key: KeyObject): PublishedKey {
  const alg = signingAlgorithm(key)
  const jwk = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' })
  const { kty = '' } = jwk
  const numbers: Record<string, string> = {}
  for (const name of members[kty] ?? []) numbers[name] = String(jwk[name])
  const kid = createHash('sha256').update(JSON.stringify(numbers)).digest('base64url')
  return { kty, use: 'sig', alg, kid, ...numbers }
}
