import { createHash, createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { isJsonObject } from '#kernel/json.ts'

/** The keys of one issuer. */
export interface KeySet {
  /**
   * The key for a token with this header; undefined when the issuer has none such.
   * Throws TARGET_UNREACHABLE when the issuer's keys cannot be had.
   */
  find(algorithm: string, kid: string | undefined): Promise<VerificationKey | undefined>
  /** Whether the keys at hand are young enough to be trusted. Costs nothing; called for every request. */
  fresh(): boolean
}

/** One key, known beforehand. A token's `kid` is not looked at, since a certificate has none. */
export function pinnedKeySet(publicKey: KeyObject): KeySet {
  const keys = [verificationKey(publicKey)]
  return {
    find: async (algorithm) => chooseKey(keys, algorithm, undefined),
    fresh: () => true,
  }
}

/** A public key that signatures are checked with. */
export interface VerificationKey {
  readonly key: KeyObject
  readonly kid: string | undefined
  /** The one algorithm that its owner allows, where that was said. */
  readonly algorithm: string | undefined
  /** SHA-256 of the key itself. */
  readonly fingerprint: string
  /** False once the owner has withdrawn it; what was verified with it then counts no more. */
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
 * The key for a token's header: of the given `kid`, or the only one that fits when the token names none.
 * Undefined when there is none, or when it is not clear which is meant.
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
 * The usable keys of a JWK set (RFC 7517). Keys for encryption, of unknown kinds, too short, or that give away their
 * private part are left out. Throws a plain Error when it is no JWK set.
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
