import { generateKeyPairSync, verify } from 'node:crypto'
import { expect, it } from 'vitest'
import { localSigner } from '#protocols/sts/signed-token.ts'

it('makes ES256 signatures of the form of RFC 7518, also with short numbers', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signer = localSigner('kid', 'ES256', privateKey)
  const content = Buffer.from('header.claims')
  const seen = { short: false, long: false }
  // Each number starts with a zero byte in one of 256 signatures.
  while (!seen.short || !seen.long) {
    const signature = await signer.sign(content)
    expect(signature).toHaveLength(64)
    expect(verify('sha256', content, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true)
    if (signature[0] === 0 || signature[32] === 0) seen.short = true
    else seen.long = true
  }
})
