import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'

export interface BadKey {
  readonly what: string
  readonly algorithm: TokenAlgorithm
  readonly text: string
  /** Part of the error message. */
  readonly reason: string
}

const pem = (key: KeyObject): string => String(key.export({ type: 'pkcs8', format: 'pem' }))
const rsa = (modulusLength: number): KeyObject => generateKeyPairSync('rsa', { modulusLength }).privateKey
const ec = (namedCurve: string): KeyObject => generateKeyPairSync('ec', { namedCurve }).privateKey

/** A key of two halves: the public part is another's, so no one can verify its signatures. */
function mixed(): string {
  const [one, other] = [ec('P-256').export({ format: 'jwk' }), ec('P-256').export({ format: 'jwk' })]
  return pem(createPrivateKey({ key: { ...one, x: other.x ?? '', y: other.y ?? '' }, format: 'jwk' }))
}

/** A private key that signs with the algorithm. */
export function goodKey(algorithm: TokenAlgorithm): string {
  switch (algorithm) {
    case 'RS256':
      return pem(rsa(2048))
    case 'ES256':
      return pem(ec('P-256'))
    case 'ES384':
      return pem(ec('P-384'))
    case 'EdDSA':
      return pem(generateKeyPairSync('ed25519').privateKey)
  }
}

/** Every kind of key that cannot sign the tokens of an endpoint. */
export function badKeys(): readonly BadKey[] {
  const encrypted = rsa(2048).export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' })
  const bad = (what: string, algorithm: TokenAlgorithm, text: string, reason: string): BadKey => ({
    what,
    algorithm,
    text,
    reason,
  })
  return [
    bad('RSA of 1024 bits', 'RS256', pem(rsa(1024)), 'an RSA key of 1024 bits'),
    bad('RSA for ES256', 'ES256', pem(rsa(2048)), 'signs RS256, and the algorithm is ES256'),
    bad('RSA for EdDSA', 'EdDSA', pem(rsa(2048)), 'signs RS256, and the algorithm is EdDSA'),
    bad('Ed25519 for RS256', 'RS256', goodKey('EdDSA'), 'signs EdDSA, and the algorithm is RS256'),
    bad('P-256 for RS256', 'RS256', goodKey('ES256'), 'signs ES256, and the algorithm is RS256'),
    bad('P-256 for ES384', 'ES384', goodKey('ES256'), 'signs ES256, and the algorithm is ES384'),
    bad('P-384 for ES256', 'ES256', goodKey('ES384'), 'signs ES384, and the algorithm is ES256'),
    bad('P-521', 'ES256', pem(ec('P-521')), 'on the curve secp521r1'),
    bad('secp256k1', 'ES256', pem(ec('secp256k1')), 'on the curve secp256k1'),
    bad('Ed448', 'EdDSA', pem(generateKeyPairSync('ed448').privateKey), 'a key of type ed448'),
    bad('X25519', 'EdDSA', pem(generateKeyPairSync('x25519').privateKey), 'a key of type x25519'),
    bad('RSA-PSS', 'RS256', pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey), 'rsa-pss'),
    bad('a key with a passphrase', 'RS256', String(encrypted), 'without a passphrase'),
    bad('two keys in one', 'ES256', mixed(), 'do not belong together'),
    bad('garbage', 'RS256', 'hello\n', 'does not hold a private key'),
    bad('nothing', 'RS256', '\n', 'does not hold a private key'),
    bad(
      'a damaged key',
      'RS256',
      pem(rsa(2048)).replace(/^.*\n.*\n/, '-----BEGIN PRIVATE KEY-----\nAAAA\n'),
      'PEM form',
    ),
  ]
}

/** Not a private key. */
export const certificateOnly = testServerCertificate
