import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import { expect, it } from 'vitest'
import { digestOf, type TokenAlgorithm } from '#kernel/signing-key.ts'
import { localSigner } from '#protocols/sts/signed-token.ts'

const content = Buffer.from('header.claims')

const isValid = (alg: TokenAlgorithm, privateKey: KeyObject, signature: Buffer): boolean =>
  verify(digestOf(alg), content, { key: createPublicKey(privateKey), dsaEncoding: 'ieee-p1363' }, signature)

it.each([
  ['ES256', 'P-256', 64],
  ['ES384', 'P-384', 96],
] as const)('%s signatures have the form of RFC 7518, also with short numbers', async (alg, namedCurve, length) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve })
  const signer = localSigner('kid', alg, privateKey)
  const half = length / 2
  const seen = { short: false, long: false }
  // Each number starts with a zero byte in one of 256 signatures.
  while (!seen.short || !seen.long) {
    const signature = await signer.sign(content)
    expect(signature).toHaveLength(length)
    expect(isValid(alg, privateKey, signature)).toBe(true)
    if (signature[0] === 0 || signature[half] === 0) seen.short = true
    else seen.long = true
  }
})
