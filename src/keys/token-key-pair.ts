import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { GatewayError } from '#kernel/errors.ts'
import type { TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import type { KeyCustody } from './key-ring.ts'
import type { SecretBox } from './secret-box.ts'

const generate = promisify(generateKeyPair)

/** In the thread pool: an RSA key takes a tenth of a second or more. */
export async function makePrivateKey(algorithm: TokenAlgorithm): Promise<KeyObject> {
  switch (algorithm) {
    case 'RS256':
      return (await generate('rsa', { modulusLength: 2048 })).privateKey
    case 'ES256':
      return (await generate('ec', { namedCurve: 'P-256' })).privateKey
    case 'ES384':
      return (await generate('ec', { namedCurve: 'P-384' })).privateKey
    case 'EdDSA':
      return (await generate('ed25519')).privateKey
  }
}

/** Bound to its endpoint and kid, so that it can't be decrypted for another. */
export const sealPrivateKey = (box: SecretBox, key: KeyObject, endpoint: string, kid: string): Promise<string> =>
  box.seal({ pkcs8: key.export({ type: 'pkcs8', format: 'der' }).toString('base64') }, ownerOf(endpoint, kid))

export async function openPrivateKey(
  box: SecretBox,
  sealed: string,
  endpoint: string,
  kid: string,
): Promise<KeyObject> {
  const { pkcs8 } = await box.open(sealed, ownerOf(endpoint, kid))
  if (typeof pkcs8 !== 'string')
    throw new GatewayError('INTERNAL', `the sealed key ${kid} of "${endpoint}" is not a key`)
  return createPrivateKey({ key: Buffer.from(pkcs8, 'base64'), format: 'der', type: 'pkcs8' })
}

/** Unique for each pair. */
const ownerOf = (endpoint: string, kid: string): string => JSON.stringify([endpoint, kid])

/** The owner of the secrets, for the box that encrypts them. */
export const keyOwners = { what: 'endpoint key', damaged: 'INTERNAL' } as const

/** One version of a key that another service stores. */
export interface CustodyVersion {
  readonly version: number
  readonly publicKey: KeyObject
}

/**
 * A key in another service, which signs with it and never reveals it. Every call rejects with TARGET_UNREACHABLE
 * while the service is unavailable.
 */
export interface KeyCustodian {
  /** The mount and the name of the key, such as `transit/aws`. */
  readonly name: string
  /** The newest version; creates a missing key. Rejects with INTERNAL for a key of another algorithm. */
  latest(algorithm: TokenAlgorithm): Promise<CustodyVersion>
  /** Creates another version, which is then the newest. */
  rotate(algorithm: TokenAlgorithm): Promise<CustodyVersion>
  /** Signs with this version of this key, which may differ from the newest key of the service. */
  sign(custody: KeyCustody, algorithm: TokenAlgorithm, content: Buffer): Promise<Buffer>
}
