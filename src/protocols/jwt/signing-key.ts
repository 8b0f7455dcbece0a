import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

/** The algorithms that sign tokens; every consumer accepts the first. */
export const tokenAlgorithms = ['RS256', 'ES256', 'ES384', 'EdDSA'] as const
export type TokenAlgorithm = (typeof tokenAlgorithms)[number]

const leastRsaBits = 2048
const mostRsaBits = 8192
const mostCharacters = 64 * 1024
const keyName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/**
 * Whether a key can have this name. It becomes part of a file name, so it has no separators and doesn't start a
 * path.
 */
export const isKeyName = (name: string): boolean => keyName.test(name)

/** Extensions of files with private keys, in search order. */
export const privateKeyEndings = ['.key', '.pem'] as const

/**
 * Whether the text should be a private key. A key file may contain a certificate or a public key instead, which
 * something else of the same name uses. Any other text counts as a damaged private key.
 */
export const looksLikePrivateKey = (text: string): boolean =>
  text.includes('PRIVATE KEY-----') || !/-----BEGIN (?:CERTIFICATE|[A-Z ]*PUBLIC KEY)-----/.test(text)

/**
 * The private key of a PEM text, which signs with this algorithm. Throws an Error for people that continues the
 * name of the place, such as "holds an RSA key of 1024 bits; …", and quotes nothing of the text.
 */
export function readSigningKey(text: string, algorithm: TokenAlgorithm): KeyObject {
  const key = readPrivateKey(text)
  const signs = signingAlgorithm(key)
  if (signs !== algorithm) {
    const wanted = `${neededKey[algorithm]}, or set the algorithm to ${signs}`
    throw new Error(`holds a key that signs ${signs}, and the algorithm is ${algorithm}; replace it by ${wanted}`)
  }
  if (!matchesItself(key)) throw new Error('holds a private key whose parts do not belong together; create it again')
  return key
}

function readPrivateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text.slice(0, mostCharacters))
  } catch {
    throw new Error('does not hold a private key in PEM form that can be read without a passphrase')
  }
}

/** The algorithm of a key. Throws an Error as `readSigningKey` does for a key with an unsupported algorithm. */
export function signingAlgorithm({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): TokenAlgorithm {
  switch (asymmetricKeyType) {
    case 'rsa': {
      const bits = asymmetricKeyDetails?.modulusLength ?? 0
      if (bits >= leastRsaBits && bits <= mostRsaBits) return 'RS256'
      throw new Error(`holds an RSA key of ${bits} bits; use one of ${leastRsaBits} to ${mostRsaBits} bits`)
    }
    case 'ec': {
      const curve = asymmetricKeyDetails?.namedCurve ?? 'unknown'
      if (curve === 'prime256v1') return 'ES256'
      if (curve === 'secp384r1') return 'ES384'
      throw new Error(`holds an EC key on the curve ${curve}; use P-256 (ES256) or P-384 (ES384)`)
    }
    case 'ed25519':
      return 'EdDSA'
    default:
      throw new Error(
        `holds a key of type ${asymmetricKeyType ?? 'unknown'}, which does not sign tokens; use RSA, P-256, P-384 or Ed25519`,
      )
  }
}

const neededKey: Readonly<Record<TokenAlgorithm, string>> = {
  RS256: `an RSA key of ${leastRsaBits} bits`,
  ES256: 'an EC key on the curve P-256',
  ES384: 'an EC key on the curve P-384',
  EdDSA: 'an Ed25519 key',
}

/** The digest of an algorithm for node:crypto; Ed25519 has its own. */
export const digestOf = (algorithm: TokenAlgorithm): 'sha256' | 'sha384' | null =>
  algorithm === 'EdDSA' ? null : algorithm === 'ES384' ? 'sha384' : 'sha256'

/** A file that mixes two keys can be read, and makes signatures that no one can verify. */
function matchesItself(key: KeyObject): boolean {
  const content = Buffer.from('gatehouse')
  const digest = digestOf(signingAlgorithm(key))
  try {
    return verify(digest, content, createPublicKey(key), sign(digest, content, key))
  } catch {
    return false
  }
}
