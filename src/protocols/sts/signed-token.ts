import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { JsonValue } from '#kernel/json.ts'
import { digestOf, signingAlgorithm, type TokenAlgorithm } from '#protocols/jwt/signing-key.ts'

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
  const numberBytes = alg === 'ES256' ? 32 : alg === 'ES384' ? 48 : undefined
  return {
    kid,
    alg,
    // Asking for the form of RFC 7518 takes Node.js as long as an ES256 signature.
    sign: (content) =>
      new Promise((resolve, reject) => {
        sign(digest, content, privateKey, (error, signature) => {
          if (error !== null) reject(error)
          else resolve(numberBytes === undefined ? signature : joinedNumbers(signature, numberBytes))
        })
      }),
  }
}

/** The two numbers of an ECDSA signature in ASN.1 (RFC 3279 2.2.3), each with the length that RFC 7518 3.4 wants. */
function joinedNumbers(signature: Buffer, bytes: number): Buffer {
  const joined = Buffer.alloc(2 * bytes)
  // After the tag and the length of the sequence, which is below 128.
  let next = 2
  for (const end of [bytes, 2 * bytes]) {
    const start = next + 2
    next = start + (signature[next + 1] ?? 0)
    // A number may have a zero before it, or be shorter.
    const first = Math.max(start, next - bytes)
    signature.copy(joined, end - (next - first), first, next)
  }
  return joined
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
