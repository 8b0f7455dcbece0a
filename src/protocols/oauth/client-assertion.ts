import { createPrivateKey, type KeyObject } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'

/** A private key by which a client proves who it is. */
export interface ClientKey {
  readonly key: KeyObject
  readonly algorithm: string
  /** By which the server finds the public key; not told when absent. */
  readonly id?: string | undefined
}

const lifetimeSeconds = 60
const leastRsaBits = 2048

/** Reads PEM text. Throws a plain Error, without anything of the key, when it cannot sign. */
export function readClientKey(pem: string, id?: string): ClientKey {
  const key = privateKey(pem)
  const algorithm = algorithmOf(key)
  if (algorithm === undefined) throw new Error('must be an RSA key of 2048 bits or more, an EC key or an Ed25519 key')
  return { key, algorithm, id }
}

export interface AssertionContent {
  readonly clientId: string
  readonly audience: string
  readonly id: string
  readonly now: Date
}

/** The assertion of RFC 7523 3. */
export function signAssertion({ clientId, audience, id, now }: AssertionContent, client: ClientKey): Promise<string> {
  const seconds = Math.floor(now.getTime() / 1000)
  return new SignJWT({})
    .setProtectedHeader({ alg: client.algorithm, typ: 'JWT', ...(client.id === undefined ? {} : { kid: client.id }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setJti(id)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + lifetimeSeconds)
    .sign(client.key)
}

function privateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    // The library's own words may quote the text.
    throw new Error('must be a private key as PEM text')
  }
}

const curves: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  switch (asymmetricKeyType) {
    case 'rsa':
      return (asymmetricKeyDetails?.modulusLength ?? 0) >= leastRsaBits ? 'RS256' : undefined
    case 'ec':
      return curves[asymmetricKeyDetails?.namedCurve ?? '']
    case 'ed25519':
      return 'EdDSA'
    default:
      return undefined
  }
}
