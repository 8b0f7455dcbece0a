import { createHash, createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { isJsonObject } from '#kernel/json.ts'
import { fitsAlgorithm, isVerificationKey, signatureAlgorithms } from '#protocols/jwt/signature-algorithms.ts'

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

export function verificationKey(key: KeyObject, kid?: string, algorithm?: string): VerificationKey {
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
