import { createHash, createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { isJsonObject } from '#kernel/json.ts'

/** The keys of one issuer. */
export interface KeySet {
  /**
   * The key for a token with this header; undefined if the issuer has none. Throws TARGET_UNREACHABLE if the
   * issuer's keys are not available.
   */
  find(algorithm: string, kid: string | undefined): Promise<VerificationKey | undefined>
  /** Whether the loaded keys are recent enough. Cheap; called for every request. */
  fresh(): boolean
}

/** One configured key. Ignores a token's `kid`, since a certificate has none. */
export function pinnedKeySet(publicKey: KeyObject): KeySet {
  const keys = [verificationKey(publicKey)]
  return {
    find: async (algorithm) => chooseKey(keys, algorithm, undefined),
    fresh: () => true,
  }
}

/** A public key that verifies signatures. */
export interface VerificationKey {
  readonly key: KeyObject
  readonly kid: string | undefined
  /** The only algorithm that its owner allows, if it names one. */
  readonly algorithm: string | undefined
  /** SHA-256 of the key itself. */
  readonly fingerprint: string
  /** False once the owner has withdrawn it; cached verifications with it are then invalid. */
  current: boolean
}

function verificationKey(key: KeyObject, kid?: string, algorithm?: string): VerificationKey {
  const fingerprint = createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
  return { key, kid, algorithm, fingerprint, current: true }
}

export const isSameKey = (a: VerificationKey, b: VerificationKey): boolean =>
  a.fingerprint === b.fingerprint && a.kid === b.kid && a.algorithm === b.algorithm

/**
 * The key for a token's header: of the given `kid`, or the only suitable one if the token names none. Undefined if
 * there is none, or several.
 */
export function chooseKey(
  keys: readonly VerificationKey[],
  algorithm: string,
  kid: string | undefined,
): VerificationKey | undefined {
  const fitting = keys.filter(
    (candidate) =>
      (kid === undefined || candidate.kid === kid) &&
      (candidate.algorithm === undefined || candidate.algorithm === algorithm) &&
      fitsAlgorithm(candidate.key, algorithm),
  )
  return fitting.length === 1 ? fitting[0] : undefined
}

const mostKeys = 100

/**
 * The usable keys of a JWK set (RFC 7517). Leaves out keys for encryption, of unknown kinds, too short, or with
 * their private part. Throws a plain Error for anything but a JWK set.
 */
export function readKeySet(document: unknown): VerificationKey[] {
  const members = isJsonObject(document) ? document['keys'] : undefined
  if (!Array.isArray(members)) throw new Error('the key document has no list "keys"')
  if (members.length > mostKeys) throw new Error(`the key document holds more than ${mostKeys} keys`)
  return members.flatMap((member: unknown) => readKey(member) ?? [])
}

function readKey(jwk: unknown): VerificationKey | undefined {
  if (!isJsonObject(jwk)) return undefined
  const { use, alg, kid, key_ops: operations } = jwk
  if (Object.hasOwn(jwk, 'd') || (use !== undefined && use !== 'sig')) return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return undefined
  if (alg !== undefined && !(typeof alg === 'string' && signatureAlgorithms.includes(alg))) return undefined
  if (kid !== undefined && typeof kid !== 'string') return undefined
  try {
    const key = createPublicKey({ key: jwk as JsonWebKeyInput['key'], format: 'jwk' })
    return isVerificationKey(key) ? verificationKey(key, kid, alg) : undefined
  } catch {
    return undefined
  }
}

interface KeyShape {
  readonly type: string
  readonly curve?: string
}

const rsa: KeyShape = { type: 'rsa' }

/** Every accepted algorithm, with the only kind of key for it. `none` and shared secrets are never accepted. */
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
function fitsAlgorithm(key: KeyObject, algorithm: string): boolean {
  const shape = keyShapes.get(algorithm)
  if (shape === undefined || key.type !== 'public' || key.asymmetricKeyType !== shape.type) return false
  const details = key.asymmetricKeyDetails
  if (shape === rsa) return (details?.modulusLength ?? 0) >= leastRsaBits
  return shape.curve === undefined || details?.namedCurve === shape.curve
}

/** Whether any accepted algorithm can use this key. */
const isVerificationKey = (key: KeyObject): boolean =>
  signatureAlgorithms.some((algorithm) => fitsAlgorithm(key, algorithm))
