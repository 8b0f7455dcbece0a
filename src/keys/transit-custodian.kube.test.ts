import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, type JWK, jwtVerify, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { TransitCustody } from '#config/configuration/token-keys.ts'
import { systemClock } from '#kernel/clock.ts'
import { tokenAlgorithms } from '#protocols/jwt/signing-key.ts'
import { publicTokenKey, signedToken } from '#protocols/sts/signed-token.ts'
import { TransitClient, type TransitLogin } from '#protocols/transit/transit-client.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { type OpenBao, startOpenBao } from '#testing/sts/openbao.ts'
import { SetClock, tokenIssuer, tokenKeyRings } from '#testing/sts/token-keys-fixture.ts'
import { keyIn } from './key-ring.ts'
import { KeyStore } from './key-store.ts'
import { TransitCustodian } from './transit-custodian.ts'

describe.skipIf(inject('openbao') === undefined)('keys in Transit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-transit-'))
  let bao: OpenBao
  let root: TransitLogin
  const measured: string[] = []

  const client = (login: TransitLogin = root, timeoutMillis = 30_000): TransitClient =>
    new TransitClient(
      { address: bao.address, ca: bao.ca, login },
      {
        clock: systemClock,
        timeoutMillis,
        measure: (operation, outcome) => void measured.push(`${operation} ${outcome}`),
      },
    )

  beforeAll(async () => {
    bao = await startOpenBao({ tls: true })
    root = { type: 'token', token: bao.rootToken }
    await bao.call('POST', 'sys/mounts/transit', { type: 'transit' })
  })

  afterAll(async () => {
    await bao?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test.each(tokenAlgorithms)('sign tokens with %s, each version separately', async (algorithm) => {
    const custodian = new TransitCustodian(client(), 'transit', `sign-${algorithm}`)
    const first = await custodian.latest(algorithm)
    const second = await custodian.rotate(algorithm)
    expect([first.version, second.version, (await custodian.latest(algorithm)).version]).toEqual([1, 2, 2])
    for (const { version, publicKey } of [first, second]) {
      const { kid } = publicTokenKey(publicKey)
      const custody = { key: custodian.name, version }
      const sign = (content: Buffer) => custodian.sign(custody, algorithm, content)
      const token = await signedToken(new Map([['sub', 'someone']]), { kid, alg: algorithm, sign })
      const { payload, protectedHeader } = await jwtVerify(token, publicKey, { algorithms: [algorithm] })
      expect([payload.sub, protectedHeader.kid]).toEqual(['someone', kid])
    }
  })

  test('of another type are rejected with advice', async () => {
    await bao.call('POST', 'transit/keys/other', { type: 'rsa-2048' })
    await bao.call('POST', 'transit/keys/secret', { type: 'aes256-gcm96' })
    const latest = (key: string) => new TransitCustodian(client(), 'transit', key).latest('ES256')
    await expect(latest('other')).rejects.toThrow(
      'signs RS256, and the algorithm is ES256; name another key, of type ecdsa-p256',
    )
    await expect(latest('secret')).rejects.toThrow('of type aes256-gcm96 has no public key; use ecdsa-p256')
    await expect(new TransitCustodian(client(), 'nowhere', 'x').latest('ES256')).rejects.toThrow('Transit refused to')
  })

  test('work after a JWT login with a policy that only allows signing, and again after the token expired', async () => {
    const issuer = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await bao.call('POST', 'sys/auth/jwt', { type: 'jwt' })
    const pem = String(createPublicKey(issuer.privateKey).export({ type: 'spki', format: 'pem' }))
    await bao.call('POST', 'auth/jwt/config', { jwt_validation_pubkeys: [pem] })
    const policy = `path "transit/keys/logged-in" { capabilities = ["read"] }
path "transit/keys/logged-in/rotate" { capabilities = ["update"] }
path "transit/sign/logged-in/*" { capabilities = ["update"] }`
    await bao.call('PUT', 'sys/policies/acl/gatehouse', { policy })
    await bao.call('POST', 'auth/jwt/role/gatehouse', {
      role_type: 'jwt',
      user_claim: 'sub',
      bound_audiences: ['bao'],
      token_policies: ['gatehouse'],
      token_ttl: 3600,
    })
    await bao.call('POST', 'transit/keys/logged-in', { type: 'ecdsa-p256' })
    const jwtFile = join(folder, 'jwt')
    const jwt = new SignJWT({ sub: 'gatehouse', aud: 'bao' })
      .setProtectedHeader({ alg: 'ES256' })
      .setIssuedAt('-1m')
      .setNotBefore('-1m')
      .setExpirationTime('1h')
    writeFileSync(jwtFile, await jwt.sign(issuer.privateKey))
    const login = { type: 'jwt', mount: 'jwt', role: 'gatehouse', jwtFile } as const
    const its = client(login)
    const custodian = new TransitCustodian(its, 'transit', 'logged-in')
    const { publicKey } = await custodian.latest('ES256')
    const sign = () => custodian.sign({ key: custodian.name, version: 1 }, 'ES256', Buffer.from('token'))
    const check = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const
    expect(verify('sha256', Buffer.from('token'), check, await sign())).toBe(true)
    // Revokes every token of the login, like an operator.
    await bao.call('PUT', 'sys/leases/revoke-prefix/auth/jwt', {})
    expect(verify('sha256', Buffer.from('token'), check, await sign())).toBe(true)
    await expect(new TransitCustodian(its, 'transit', 'not-allowed').latest('ES256')).rejects.toThrow(
      'check the policy',
    )
  })

  test("that can't be reached cost a few callers the timeout, and the others nothing", async () => {
    const its = client(root, 5000)
    const custodian = new TransitCustodian(its, 'transit', 'away')
    await custodian.latest('ES256')
    const sign = () => custodian.sign({ key: custodian.name, version: 1 }, 'ES256', Buffer.from('token'))
    await bao.pause()
    try {
      const first = await Promise.allSettled([sign(), sign(), sign()])
      for (const each of first) expect(each).toMatchObject({ reason: { code: 'TARGET_UNREACHABLE', retryAfter: 2 } })
      measured.length = 0
      for (let i = 0; i < 50; i++) await expect(sign()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      expect(measured.filter((each) => each === 'sign skipped').length).toBeGreaterThan(40)
    } finally {
      bao.resume()
    }
    await expect
      .poll(
        () =>
          sign().then(
            (signature) => signature.length,
            () => 0,
          ),
        { timeout: 30_000 },
      )
      .toBe(64)
    measured.length = 0
    await sign()
    expect(measured).toEqual(['sign done'])
  })

  test('follow the life of a ring: versions are next, active, retiring, also after a rotation by an operator', async () => {
    const clock = new SetClock()
    const store = new KeyStore(memoryDatabase(clock.read))
    const custody: TransitCustody = {
      address: bao.address,
      namespace: undefined,
      mount: 'transit',
      key: 'ring',
      ca: bao.ca,
      login: root,
      leave: false,
    }
    const shared = client()
    const custodian = () => new TransitCustodian(shared, 'transit', 'ring')
    const issuer = tokenIssuer({ custody })
    const rings = tokenKeyRings({ store, clock, issuers: [issuer], custodian })
    const first = await rings.tend('aws')
    expect(first.keys).toMatchObject([{ state: 'active', sealed: null, custody: { key: 'transit/ring', version: 1 } }])
    expect(JSON.stringify(await store.get('aws'))).not.toContain('PRIVATE')
    const token = await signedToken(new Map([['sub', 'a']]), await rings.active('aws'))
    await jwtVerify(token, createLocalJWKSet({ keys: [...(await rings.published('aws'))] as JWK[] }))
    // By an operator, in the service itself.
    await bao.call('POST', 'transit/keys/ring/rotate', {})
    const second = await rings.tend('aws')
    expect(second.keys.map(({ state, custody: its }) => [state, its?.version])).toEqual([
      ['active', 1],
      ['next', 2],
    ])
    await expect(rings.rotate('aws')).rejects.toThrow('has a next key already')
    await rings.activate('aws', keyIn(second, 'next')?.kid ?? '')
    const third = await rings.rotate('aws')
    expect(keyIn(third, 'next')?.custody?.version).toBe(3)
    const revoked = keyIn(third, 'next')?.kid ?? ''
    expect((await rings.revoke('aws', revoked)).keys.map(({ kid }) => kid)).not.toContain(revoked)
    const after = await rings.tend('aws')
    expect(keyIn(after, 'active')?.custody?.version).toBe(2)
    expect(after.keys.map(({ kid }) => kid)).not.toContain(revoked)
    // Back to keys of the gateway: the service signs until one of them does.
    rings.configure([tokenIssuer({ custody: { ...custody, leave: true } })])
    const leaving = await rings.tend('aws')
    expect(keyIn(leaving, 'next')).toMatchObject({ custody: null, sealed: expect.any(String) })
    expect((await rings.active('aws')).kid).toBe(keyIn(after, 'active')?.kid)
  })
})
