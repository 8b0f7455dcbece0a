import type { KeyObject } from 'node:crypto'

interface KeyShape {
  readonly type: string
  readonly curve?: string
}

const rsa: KeyShape = { type: 'rsa' }

/** Every algorithm that is accepted, with the only kind of key that may be used with it. `none` and shared secrets never are. */
const keyShapes: ReadonlyMap<string, KeyShape> = new Map([
  ['RS256', rsa],
  ['RS384', rsa],
  ['RS512', rsa],
  ['PS256', rsa],
  ['PS384', rsa],
  ['PS512', rsa],
  ['ES256', { type: 'ec', curve: 'prime256v1' }],
  ['ES384', { type: 'ec', curve: 'secp384r1' }],
  ['ES512', { type: 'ec', curve: 'secp521r1' }],
  ['EdDSA', { type: 'ed25519' }],
])

export const signatureAlgorithms: readonly string[] = [...keyShapes.keys()]

const leastRsaBits = 2048

/** Whether this public key may verify signatures of that algorithm. */
export function fitsAlgorithm(key: KeyObject, algorithm: string): boolean {
  const shape = keyShapes.get(algorithm)
  if (shape === undefined || key.type !== 'public' || key.asymmetricKeyType !== shape.type) return false
  const details = key.asymmetricKeyDetails
  if (shape === rsa) return (details?.modulusLength ?? 0) >= leastRsaBits
  return shape.curve === undefined || details?.namedCurve === shape.curve
}

/** Whether any accepted algorithm can use this key. */
export const isVerificationKey = (key: KeyObject): boolean =>
  signatureAlgorithms.some((algorithm) => fitsAlgorithm(key, algorithm))
