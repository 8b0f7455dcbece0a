import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { createLocalJWKSet, type JWK, jwtVerify } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import type { TransitCustody } from '#config/configuration/token-keys.ts'
import { statement } from '#database/statement.ts'
import { GatewayError } from '#kernel/errors.ts'
import { tokenAlgorithms } from '#protocols/jwt/signing-key.ts'
import { publicTokenKey, signedToken } from '#protocols/sts/signed-token.ts'
import { type MemoryDatabase, memoryDatabase } from '#testing/databases/memory-database.ts'
import { keyBox, SetClock, tokenIssuer, tokenKeyRings } from '#testing/sts/token-keys-fixture.ts'
import { admit, keyIn, observe, publishedKeys } from './key-ring.ts'
import { KeyStore } from './key-store.ts'
import { type KeyCustodian, openPrivateKey } from './token-key-pair.ts'
import { followSeconds } from './token-key-rings.ts'

let clock: SetClock
let database: MemoryDatabase
let store: KeyStore
let given: Map<string, KeyObject | Error>

beforeEach(() => {
  clock = new SetClock()
  database = memoryDatabase(clock.read)
  store = new KeyStore(database)
  given = new Map()
})

const gateway = (more: Parameters<typeof tokenIssuer>[0] = {}) =>
  tokenKeyRings({ store, clock, given, issuers: [tokenIssuer(more)] })
const ecKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
/** Everything that is published counts as seen. */
const look = (rings: ReturnType<typeof gateway>) =>
  rings.update('aws', (ring) =>
    observe(ring, {
      at: clock.now,
      kids: new Set(publishedKeys(ring).map(({ kid }) => kid ?? '')),
      cacheSeconds: 300,
    }),
  )

describe('the keys of an endpoint', () => {
  test('are created on first use, once for all gateways, and verify their signatures', async () => {
    const [one, two] = [gateway({ algorithm: 'RS256' }), gateway({ algorithm: 'RS256' })]
    const keys = await Promise.all([one.active('aws'), two.active('aws'), one.active('aws'), two.published('aws')])
    const [first, second, , published] = keys
    expect(second.kid).toBe(first.kid)
    expect(published.map(({ kid }) => kid)).toEqual([first.kid])
    expect(Object.keys(published[0] ?? {}).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use'])
    const signature = await first.sign(Buffer.from('token'))
    const publicKey = createPublicKey({ key: { ...published[0] }, format: 'jwk' })
    expect(verify('sha256', Buffer.from('token'), publicKey, signature)).toBe(true)
  })

  test.each(tokenAlgorithms)(
    'are created for %s, announced with it, and verify their signatures',
    async (algorithm) => {
      const rings = gateway({ algorithm })
      const key = await rings.active('aws')
      const { discovery, keys } = await rings.documents('aws')
      expect(discovery['id_token_signing_alg_values_supported']).toEqual([algorithm])
      const token = await signedToken(new Map([['sub', 'someone']]), key)
      const { payload } = await jwtVerify(token, createLocalJWKSet({ keys: [...keys.keys] as JWK[] }))
      expect(payload.sub).toBe('someone')
    },
  )

  test('C9: no two endpoints share a key, even with the same key pair name', async () => {
    const issuers = ['aws', 'gcp'].map((endpoint) => tokenIssuer({ endpoint, keypair: 'unison-saml2-rp-sig' }))
    const rings = tokenKeyRings({ store, clock, issuers })
    expect((await rings.active('aws')).kid).not.toBe((await rings.active('gcp')).kid)
  })

  test('are stored encrypted, and can be decrypted for their endpoint and kid only', async () => {
    const { kid } = await gateway().active('aws')
    const ring = JSON.stringify((await store.get('aws'))?.ring)
    const sealed = (JSON.parse(ring) as { keys: { sealed: string }[] }).keys[0]?.sealed ?? ''
    const privateKey = await openPrivateKey(keyBox(), sealed, 'aws', kid)
    expect(publicTokenKey(privateKey).kid).toBe(kid)
    const { d } = privateKey.export({ format: 'jwk' })
    const der = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
    expect(ring).not.toContain(d)
    expect(ring).not.toContain(der.slice(20, 60))
    for (const [endpoint, other] of [
      ['gcp', kid],
      ['aws', 'x'],
    ] as const) {
      await expect(openPrivateKey(keyBox(), sealed, endpoint, other)).rejects.toMatchObject({ code: 'INTERNAL' })
    }
    await expect(openPrivateKey(keyBox(Buffer.alloc(32, 8)), sealed, 'aws', kid)).rejects.toThrow('not here')
  })

  test('that are damaged are an error, and are not replaced', async () => {
    await gateway().active('aws')
    const damage = statement<{ ring: string }>(`update endpoint_keys set ring = :ring where endpoint = 'aws'`)
    await database.transaction((tx) => damage.run(tx, { ring: '{"keys":[]}' }))
    await expect(gateway().active('aws')).rejects.toThrow('damaged')
    await expect(gateway().tend('aws')).rejects.toThrow('damaged')
    expect((await store.get('aws'))?.version).toBe(1)
  })

  test('exist for configured endpoints only', async () => {
    const rings = gateway()
    for (const call of [rings.active('other'), rings.documents('other'), rings.rotate('__proto__')]) {
      await expect(call).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
    await rings.active('aws')
    rings.configure([])
    await expect(rings.active('aws')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

test("an idle gateway follows a revocation at its first signature, unless it can't read the store", async () => {
  const [idle, other] = [gateway(), gateway()]
  const { kid } = await idle.active('aws')
  await other.revoke('aws', kid)
  clock.pass(16)
  database.failure = new Error('away')
  expect((await idle.active('aws')).kid).toBe(kid)
  database.failure = undefined
  expect((await idle.active('aws')).kid).not.toBe(kid)
})

describe('rotation', () => {
  test('C5, C6: the next key is published first and signs later; the old one stays for its tokens', async () => {
    const rings = gateway()
    const old = await rings.active('aws')
    const next = keyIn(await rings.rotate('aws'), 'next')?.kid
    expect((await rings.active('aws')).kid).toBe(old.kid)
    expect((await rings.published('aws')).map(({ kid }) => kid)).toEqual([old.kid, next])
    for (let i = 0; i < 16; i++) {
      await look(rings)
      clock.pass(60)
      expect((await rings.active('aws')).kid).toBe(old.kid)
    }
    await look(rings)
    clock.pass(60)
    expect((await rings.active('aws')).kid).toBe(next)
    expect((await rings.published('aws')).map(({ kid }) => kid)).toEqual([next, old.kid])
    clock.pass(3600)
    await rings.documents('aws')
    expect((await rings.published('aws')).map(({ kid }) => kid)).toEqual([next])
  })

  test('two concurrent operators with --now cause one rotation, and both get the same next key', async () => {
    const [one, two] = [gateway(), gateway()]
    await Promise.all([one.active('aws'), two.active('aws')])
    const rings = await Promise.all([one.rotate('aws', 'ann', 'join'), two.rotate('aws', 'ben', 'join')])
    const [first = '', second] = rings.map((ring) => keyIn(ring, 'next')?.kid)
    expect(first).not.toBe('')
    expect(second).toBe(first)
    // One who comes while gateways change to the new key has what they want.
    await one.activate('aws', first)
    clock.pass(followSeconds - 1)
    const joined = await two.rotate('aws', 'ben', 'join')
    expect([keyIn(joined, 'active')?.kid, keyIn(joined, 'next')]).toEqual([first, undefined])
    clock.pass(1)
    expect(keyIn(await two.rotate('aws', 'ben', 'join'), 'next')).toBeDefined()
  })

  test('concurrent requests cause one rotation', async () => {
    const gateways = [gateway(), gateway(), gateway()]
    await Promise.all(gateways.map((rings) => rings.active('aws')))
    const settled = await Promise.allSettled(gateways.map((rings) => rings.rotate('aws')))
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await gateway().published('aws')).toHaveLength(2)
  })

  test('happens automatically after its period, and after a change of the algorithm', async () => {
    const rings = gateway()
    await rings.tend('aws')
    clock.pass(90 * 86_400 - 1)
    expect((await rings.tend('aws')).keys).toHaveLength(1)
    clock.pass(1)
    expect((await rings.tend('aws')).keys.map(({ state }) => state)).toEqual(['active', 'next'])
    const other = gateway({ endpoint: 'gcp' })
    await other.tend('gcp')
    const changed = gateway({ endpoint: 'gcp', algorithm: 'RS256' })
    expect((await changed.tend('gcp')).keys.map(({ alg, state }) => [alg, state])).toEqual([
      ['ES256', 'active'],
      ['RS256', 'next'],
    ])
    expect((await changed.documents('gcp')).discovery['id_token_signing_alg_values_supported']).toEqual([
      'ES256',
      'RS256',
    ])
  })

  test('waits for tokens of a configuration with a longer lifetime', async () => {
    const rings = gateway()
    await rings.active('aws')
    rings.configure([tokenIssuer({ maxTokenSeconds: 3600 })])
    await rings.active('aws')
    rings.configure([tokenIssuer({ maxTokenSeconds: 60 })])
    await rings.active('aws')
    expect((await rings.tend('aws')).keys[0]?.longest).toBe(3600)
  })
})

describe('a configured key', () => {
  test('is used if there is one', async () => {
    const key = ecKey()
    given.set('aws', key)
    const rings = gateway()
    expect((await rings.active('aws')).kid).toBe(publicTokenKey(key).kid)
    clock.pass(1000 * 86_400)
    expect((await rings.tend('aws')).keys).toHaveLength(1)
    await expect(rings.rotate('aws')).rejects.toThrow('is given')
  })

  test('C6: its replacement signs only after the wait, and the old one signs until then', async () => {
    const [old, replacement] = [ecKey(), ecKey()]
    given.set('aws', old)
    const rings = gateway()
    await rings.tend('aws')
    given.set('aws', replacement)
    await rings.tend('aws')
    clock.pass(20)
    expect((await rings.active('aws')).kid).toBe(publicTokenKey(old).kid)
    expect(await rings.published('aws')).toHaveLength(2)
    for (let i = 0; i < 20; i++) {
      await look(rings)
      clock.pass(60)
      await rings.tend('aws')
    }
    expect((await rings.active('aws')).kid).toBe(publicTokenKey(replacement).kid)
  })

  test('replaces a next key, and is followed by another after its removal', async () => {
    const rings = gateway()
    await rings.tend('aws')
    await rings.rotate('aws')
    const key = ecKey()
    given.set('aws', key)
    const ring = await rings.tend('aws')
    expect(ring.keys.map(({ state, given: isGiven }) => [state, isGiven])).toEqual([
      ['active', false],
      ['next', true],
    ])
    given.delete('aws')
    expect((await rings.tend('aws')).keys.every((each) => !each.given)).toBe(true)
  })

  test('that is unusable stops an endpoint without a key, and no other', async () => {
    given.set('aws', new Error('no key'))
    await expect(gateway().active('aws')).rejects.toMatchObject({ code: 'INTERNAL' })
    given.set('aws', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)
    await expect(gateway().active('aws')).rejects.toThrow('signs RS256')
    given.clear()
    const { kid } = await gateway().active('aws')
    given.set('aws', generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey)
    expect((await gateway().tend('aws')).keys.map((key) => key.kid)).toEqual([kid])
  })
})

describe('a key in another service', () => {
  const custody: TransitCustody = {
    address: 'https://bao.example.com',
    namespace: undefined,
    mount: 'transit',
    key: 'aws',
    ca: undefined,
    login: { type: 'token', token: 't' },
    leave: false,
  }
  const versions = [ecKey(), ecKey(), ecKey()]
  const rsaKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  let latest: number
  let away: GatewayError | undefined

  const custodian = (): KeyCustodian => ({
    name: 'transit/aws',
    latest: async () => {
      if (away !== undefined) throw away
      return { version: latest, publicKey: createPublicKey(versions[latest - 1] as KeyObject) }
    },
    rotate: async () => {
      if (away !== undefined) throw away
      latest++
      return custodian().latest('ES256')
    },
    sign: async ({ version }, _, content) => {
      if (away !== undefined) throw away
      return sign('sha256', content, { key: versions[version - 1] as KeyObject, dsaEncoding: 'ieee-p1363' })
    },
  })
  const inService = (more: Parameters<typeof tokenIssuer>[0] = {}) =>
    tokenKeyRings({ store, clock, given, issuers: [tokenIssuer({ custody, ...more })], custodian })

  beforeEach(() => {
    latest = 1
    away = undefined
  })

  test('replaces a local one in the usual way, and the local one signs until then', async () => {
    const local = await gateway().active('aws')
    const rings = inService()
    expect((await rings.tend('aws')).keys).toMatchObject([
      { state: 'active', custody: null },
      { state: 'next', custody: { key: 'transit/aws', version: 1 }, sealed: null },
    ])
    expect((await rings.active('aws')).kid).toBe(local.kid)
    for (let i = 0; i < 20; i++) {
      await look(rings)
      clock.pass(60)
      await rings.tend('aws')
    }
    expect((await rings.active('aws')).kid).toBe(publicTokenKey(versions[0] as KeyObject).kid)
  })

  test('is rotated there after its period, with one version for concurrent requests', async () => {
    const rings = inService()
    await rings.tend('aws')
    clock.pass(90 * 86_400)
    await Promise.all([rings.tend('aws'), inService().tend('aws')])
    const ring = await rings.tend('aws')
    expect(ring.keys.map(({ state }) => state)).toEqual(['active', 'next'])
    expect(keyIn(ring, 'next')?.custody?.version).toBe(latest)
  })

  test('that is unavailable keeps the ring, is reported, and answers as unreachable', async () => {
    away = new GatewayError('TARGET_UNREACHABLE', 'away', { retryAfter: 2 })
    await expect(inService().active('aws')).rejects.toBe(away)
    away = undefined
    const rings = inService()
    const before = await rings.tend('aws')
    away = new GatewayError('TARGET_UNREACHABLE', 'away', { retryAfter: 2 })
    expect((await rings.tend('aws')).keys).toEqual(before.keys)
    expect(rings.problem('aws')).toEqual({ event: 'custodyFailed', reason: 'away' })
    await expect((await rings.active('aws')).sign(Buffer.from('x'))).rejects.toBe(away)
    expect((await rings.documents('aws')).keys.keys).toHaveLength(1)
    away = undefined
    await rings.tend('aws')
    expect(rings.problem('aws')).toBeUndefined()
  })

  test.each<[string, (content: Buffer) => Buffer]>([
    ['of another key', (content) => sign('sha256', content, { key: ecKey(), dsaEncoding: 'ieee-p1363' })],
    ['of another type', (content) => sign('sha256', content, rsaKey)],
    ['in another form', (content) => sign('sha256', content, versions[0] as KeyObject)],
    ['of another content', () => sign('sha256', Buffer.from('y'), versions[0] as KeyObject)],
    ['that is empty', () => Buffer.alloc(0)],
    ['that is too long', () => Buffer.alloc(100_000, 1)],
  ])('with a signature that %s issues no token', async (_, answer) => {
    const service: KeyCustodian = { ...custodian(), sign: async (_custody, _algorithm, content) => answer(content) }
    const issuers = [tokenIssuer({ custody })]
    const rings = tokenKeyRings({ store, clock, given, issuers, custodian: () => service })
    const { sign: signed } = await rings.active('aws')
    await expect(signed(Buffer.from('x'))).rejects.toThrow('version 1 of transit/aws signs with another key')
  })

  test('that is no longer configured is followed by a local one, and does not sign', async () => {
    await inService().tend('aws')
    const rings = gateway()
    const ring = await rings.tend('aws')
    expect(ring.keys.map(({ state, custody: its }) => [state, its === null])).toEqual([
      ['active', false],
      ['next', true],
    ])
    await expect(rings.active('aws')).rejects.toThrow('is not configured')
    await rings.activate('aws', keyIn(ring, 'next')?.kid ?? '')
    expect((await rings.active('aws')).sign).toBeTypeOf('function')
  })
})

describe('activating a key at once', () => {
  test('is idempotent, and never activates the key of another operator', async () => {
    const [one, other] = [gateway(), gateway()]
    await one.tend('aws')
    const first = keyIn(await one.rotate('aws'), 'next')?.kid ?? ''
    await other.activate('aws', first)
    // Unpublished when the first operator's command activates the key that it published.
    const second = keyIn(await other.rotate('aws'), 'next')?.kid ?? ''
    const after = await one.activate('aws', first)
    expect([keyIn(after, 'active')?.kid, keyIn(after, 'next')?.kid]).toEqual([first, second])
    await other.activate('aws', second)
    await expect(one.activate('aws', first)).rejects.toThrow(`${first} isn't the next key of endpoint "aws" any more`)
    expect(keyIn(await one.tend('aws'), 'active')?.kid).toBe(second)
  })
})

describe('while the database cannot be reached', () => {
  const away = new Error('away')

  test('signs for five minutes and no longer', async () => {
    const rings = gateway()
    const { kid } = await rings.active('aws')
    database.failure = away
    clock.pass(300)
    expect((await rings.active('aws')).kid).toBe(kid)
    clock.pass(1)
    await expect(rings.active('aws')).rejects.toBe(away)
    database.failure = undefined
    expect((await rings.active('aws')).kid).toBe(kid)
  })

  test('serves unchanged documents that must not be cached', async () => {
    const rings = gateway()
    expect((await rings.documents('aws')).maxAgeSeconds).toBe(300)
    database.failure = away
    clock.pass(60)
    expect((await rings.documents('aws')).maxAgeSeconds).toBe(0)
    clock.pass(3600)
    await expect(rings.documents('aws')).rejects.toBe(away)
  })

  test('treats its data as outdated after the clock was set back', async () => {
    const rings = gateway()
    await rings.active('aws')
    database.failure = away
    clock.pass(-60)
    await expect(rings.active('aws')).rejects.toBe(away)
  })
})

test('keeps concurrent changes of another gateway', async () => {
  const rings = gateway()
  await rings.tend('aws')
  const stored = await store.get('aws')
  let first = true
  const ring = await rings.update('aws', (present, policy, now) => {
    if (first) {
      first = false
      void store.swap('aws', 1, { ...stored?.ring, looked: 5 })
    }
    const key = { kid: 'n', alg: 'ES256', jwk: { kid: 'n' }, sealed: 's', given: false, custody: null } as const
    return admit(present, key, policy, now)
  })
  expect([ring.looked, ring.keys.length]).toEqual([5, 2])
})
