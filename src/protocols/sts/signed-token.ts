import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { JsonValue } from '#kernel/json.ts'
import { digestOf, signingAlgorithm, type TokenAlgorithm } from '#kernel/signing-key.ts'

/** What issuing needs of a key: the private part may be in another process. */
interface TokenSigner {
  readonly kid: string
  readonly alg: TokenAlgorithm
  /** The signature in the form of RFC 7518; for ECDSA both numbers one after the other. */
  sign(content: Buffer): Promise<Buffer>
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A JWT in its compact form (RFC 7515 7.1) with the header that every consumer accepts. */
export async function signedToken(claims: ReadonlyMap<string, JsonValue>, signer: TokenSigner): Promise<string> {
  const { alg, kid } = signer
  const content = `${encode({ alg, typ: 'JWT', kid })}.${encode(Object.fromEntries(claims))}`
  return `${content}.${(await signer.sign(Buffer.from(content))).toString('base64url')}`
}

/** A key of this process. It signs in the thread pool, so that the cores share the work and nothing else waits for it. */
export function localSigner(kid: string, alg: TokenAlgorithm, privateKey: KeyObject): TokenSigner {
  const digest = digestOf(alg)
  // Passing only the key costs the main thread a third of passing it with options, which only ECDSA needs.
  const key =
    digest === null || alg === 'RS256' ? privateKey : ({ key: privateKey, dsaEncoding: 'ieee-p1363' } as const)
  return {
    kid,
    alg,
    sign: (content) =>
      new Promise((resolve, reject) => {
        sign(digest, content, key, (error, signature) => (error === null ? resolve(signature) : reject(error)))
      }),
  }
}

/** An alias, not an interface, so that it is also a record of texts. */
type PublishedKey = {
  readonly kty: string
  readonly use: 'sig'
  readonly alg: TokenAlgorithm
  readonly kid: string
} & Readonly<Record<string, string>>

/** The published members of a key, by its type, in the order of their names as RFC 7638 hashes them. */
const members: Readonly<Record<string, readonly ('crv' | 'e' | 'kty' | 'n' | 'x' | 'y')[]>> = {
  RSA: ['e', 'kty', 'n'],
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
}

/**
 * A key for publication, without members that a consumer rejects: Google accepts no others, Amazon rejects
 * `key_ops`. The `kid` is the RFC 7638 thumbprint, which follows from the key alone. Throws an Error for a key that
 * signs no tokens.
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
