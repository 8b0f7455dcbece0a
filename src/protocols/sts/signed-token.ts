import { type KeyObject, sign } from 'node:crypto'
import type { JsonValue } from '#kernel/json.ts'

export interface SigningKey {
  readonly kid: string
  readonly alg: 'RS256' | 'ES256'
  readonly privateKey: KeyObject
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * A JWT in its compact form (RFC 7515 7.1) with the header that every consumer takes. It is signed in the thread pool,
 * so that the cores share the work and nothing else waits for it.
 */
export function signedToken(claims: ReadonlyMap<string, JsonValue>, key: SigningKey): Promise<string> {
  const { alg, kid, privateKey } = key
  const content = `${encode({ alg, typ: 'JWT', kid })}.${encode(Object.fromEntries(claims))}`
  return new Promise((resolve, reject) => {
    // A key by itself costs the main thread a third of one with options, which only ECDSA needs.
    const signer = alg === 'RS256' ? privateKey : ({ key: privateKey, dsaEncoding: 'ieee-p1363' } as const)
    sign('sha256', Buffer.from(content), signer, (error, signature) => {
      if (error === null) resolve(`${content}.${signature.toString('base64url')}`)
      else reject(error)
    })
  })
}
