import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { KeyCustody } from '#engine/keys/key-ring.ts'
import type { SecretBox } from '#engine/workflow/sealed-secret.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TokenAlgorithm } from '#kernel/signing-key.ts'

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

/** Bound to its endpoint and kid, so that it opens nowhere else. */
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

/** No two pairs have the same text. */
const ownerOf = (endpoint: string, kid: string): string => JSON.stringify([endpoint, kid])

/** Whose secrets they are, for the box that seals them. */
export const keyOwners = { what: 'endpoint key', damaged: 'INTERNAL' } as const

/** One version of a key that another service keeps. */
export interface CustodyVersion {
  readonly version: number
  readonly publicKey: KeyObject
}

/** A key in another service, which signs with it and never hands it out. Every call rejects with TARGET_UNREACHABLE while that is away. */
export interface KeyCustodian {
  /** The mount and the name of the key, such as `transit/aws`. */
  readonly name: string
  /** The newest version; the key is created where there is none. Rejects with INTERNAL for a key of another algorithm. */
  latest(algorithm: TokenAlgorithm): Promise<CustodyVersion>
  /** Another version, which is then the newest. */
  rotate(algorithm: TokenAlgorithm): Promise<CustodyVersion>
  /** With this version of this key, which may be another key of the same service than the newest one. */
  sign(custody: KeyCustody, algorithm: TokenAlgorithm, content: Buffer): Promise<Buffer>
}
