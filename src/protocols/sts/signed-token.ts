import { type KeyObject, sign } from 'node:crypto'
import type { JsonValue } from '#kernel/json.ts'
import { digestOf, type TokenAlgorithm } from '#kernel/signing-key.ts'

/** All that issuing needs of a key: the private part may be in another process. */
export interface TokenSigner {
  readonly kid: string
  readonly alg: TokenAlgorithm
  /** The signature as RFC 7518 wants it; of ECDSA that is both numbers one after the other. */
  sign(content: Buffer): Promise<Buffer>
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A JWT in its compact form (RFC 7515 7.1) with the header that every consumer takes. */
export async function signedToken(claims: ReadonlyMap<string, JsonValue>, signer: TokenSigner): Promise<string> {
  const { alg, kid } = signer
  const content = `${encode({ alg, typ: 'JWT', kid })}.${encode(Object.fromEntries(claims))}`
  return `${content}.${(await signer.sign(Buffer.from(content))).toString('base64url')}`
}

/** A key of this process. It signs in the thread pool, so that the cores share the work and nothing else waits for it. */
export function localSigner(kid: string, alg: TokenAlgorithm, privateKey: KeyObject): TokenSigner {
  const digest = digestOf(alg)
  // A key by itself costs the main thread a third of one with options, which only ECDSA needs.
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
