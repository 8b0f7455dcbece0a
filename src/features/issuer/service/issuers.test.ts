import { generateKeyPairSync } from 'node:crypto'
import { jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { localSigner } from '#protocols/sts/signed-token.ts'
import { Issuers } from './issuers.ts'

test('a token for own calls is signed by the issuer, and short-lived', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const active = async (endpoint: string) => localSigner(endpoint, 'ES256', privateKey)
  const keys = { endpoint: 'idp:remote', issuer: 'https://id.test/auth/idp/remote' }
  const issuers = new Issuers({
    configuration: { issuers: [{ name: 'remote', mount: '/auth/idp/remote', keys }] },
    services: { tokenKeys: { active }, clock: () => new Date(1_800_000_000_000) },
  } as unknown as ConstructorParameters<typeof Issuers>[0])
  const call = { issuer: 'remote', subject: 'control-plane', audience: 'https://k.test/' }
  const { token, expires } = await issuers.serviceToken(call)
  const verified = await jwtVerify(token, publicKey, {
    issuer: keys.issuer,
    audience: call.audience,
    algorithms: ['ES256'],
    currentDate: new Date(1_800_000_030_000),
  })
  expect(verified.payload).toMatchObject({ sub: 'control-plane', exp: expires.getTime() / 1000 })
  expect(verified.protectedHeader.kid).toBe('idp:remote')
  expect(expires.getTime()).toBe(1_800_000_060_000)
  const other = await issuers.serviceToken({ ...call, host: 'other.test' })
  const claims = JSON.parse(Buffer.from(other.token.split('.')[1] ?? '', 'base64url').toString()) as { iss: string }
  expect(claims.iss).toBe('https://other.test/auth/idp/remote')
  await expect(issuers.serviceToken({ ...call, issuer: 'none' })).rejects.toMatchObject({ code: 'INTERNAL' })
})
