import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import {
  DiscoveredKeySet,
  discoveryTimes,
  type FetchJson,
  fetchJson,
  fetchJsonTrusting,
} from '#protocols/jwt/discovered-key-set.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { FakeIssuer, rsaKey, sendJson } from '#testing/login/fake-issuer.ts'

const [first, second] = [rsaKey('k1'), rsaKey('k2')]
const discoveryPath = '/issuer/.well-known/openid-configuration'
const keysPath = '/issuer/certs'

let issuer: FakeIssuer
let now: number

beforeEach(async () => {
  issuer = await FakeIssuer.start([first])
  now = 1_800_000_000_000
})
afterEach(() => issuer.close())

const keySet = (options: { issuer?: string; fetch?: FetchJson } = {}) =>
  new DiscoveredKeySet({ issuer: issuer.url, clock: () => new Date(now), log: silentLogger, ...options })

const unreachable = { code: 'TARGET_UNREACHABLE', status: 503 }

describe('an issuer found by discovery', () => {
  test('is read when a key is first needed, once for all waiting callers', async () => {
    const keys = keySet()
    expect(issuer.calls).toEqual([])
    const found = await Promise.all([keys.find('RS256', 'k1'), keys.find('RS256', 'k1'), keys.find('RS256', 'k1')])
    expect(new Set(found).size).toBe(1)
    expect(found[0]?.kid).toBe('k1')
    expect(issuer.calls).toEqual([discoveryPath, keysPath])
  })

  test('a key is found only by its own kid and algorithm', async () => {
    issuer.keys = [first, second]
    const keys = keySet()
    expect((await keys.find('RS256', 'k2'))?.kid).toBe('k2')
    expect(await keys.find('RS256', undefined)).toBeUndefined()
    expect(await keys.find('RS256', 'K1')).toBeUndefined()
    expect(await keys.find('PS256', 'k1')).toBeUndefined()
    expect(await keys.find('ES256', 'k1')).toBeUndefined()
    expect(await keys.find('HS256', 'k1')).toBeUndefined()
  })

  test('a token without kid gets the only key', async () => {
    expect((await keySet().find('RS256', undefined))?.kid).toBe('k1')
  })

  test('a rotated key is found after the cooldown, and not before', async () => {
    const keys = keySet()
    const old = await keys.find('RS256', 'k1')
    issuer.keys = [second]
    now += discoveryTimes.cooldown - 1
    expect(await keys.find('RS256', 'k2')).toBeUndefined()
    expect(issuer.calls).toHaveLength(2)
    expect(old?.current).toBe(true)
    now += 1
    expect((await keys.find('RS256', 'k2'))?.kid).toBe('k2')
    expect(old?.current).toBe(false)
    expect(issuer.calls).toHaveLength(4)
    for (let i = 0; i < 20; i++) expect(await keys.find('RS256', `unknown-${i}`)).toBeUndefined()
    expect(issuer.calls).toHaveLength(4)
  })

  test('another key under a known kid replaces the old one', async () => {
    const keys = keySet()
    const old = await keys.find('RS256', 'k1')
    issuer.keys = [{ ...second, kid: 'k1' }]
    now += discoveryTimes.cooldown
    await keys.find('RS256', 'unknown')
    const replaced = await keys.find('RS256', 'k1')
    expect(replaced?.fingerprint).not.toBe(old?.fingerprint)
    expect(old?.current).toBe(false)
  })

  test('an unchanged key keeps its identity through a reload', async () => {
    const keys = keySet()
    const old = await keys.find('RS256', 'k1')
    issuer.keys = [first, second]
    now += discoveryTimes.cooldown
    await keys.find('RS256', 'k2')
    expect(await keys.find('RS256', 'k1')).toBe(old)
  })

  test('keys beyond their age are loaded again in the background', async () => {
    const keys = keySet()
    await keys.find('RS256', 'k1')
    issuer.keys = [second]
    now += discoveryTimes.maxAge
    expect(keys.fresh()).toBe(true)
    await expect.poll(() => issuer.calls.length).toBe(4)
    await expect.poll(async () => (await keys.find('RS256', 'k2'))?.kid).toBe('k2')
  })

  test('while it is down its keys are used for a bounded time', async () => {
    const keys = keySet()
    await keys.find('RS256', 'k1')
    issuer.overrides.set(discoveryPath, (_request, response) => void response.writeHead(500).end())
    now += discoveryTimes.maxAge + discoveryTimes.grace - 1
    expect((await keys.find('RS256', 'k1'))?.kid).toBe('k1')
    await expect.poll(() => issuer.calls.length).toBe(3)
    now += discoveryTimes.cooldown
    expect(keys.fresh()).toBe(false)
    await expect(keys.find('RS256', 'k1')).rejects.toMatchObject(unreachable)
    issuer.overrides.clear()
    now += discoveryTimes.retry
    expect((await keys.find('RS256', 'k1'))?.kid).toBe('k1')
  })

  test('unreachable at first use is 503 with a retry hint, and is not called repeatedly', async () => {
    let calls = 0
    const keys = keySet({
      fetch: async () => {
        calls++
        throw new Error('connection refused')
      },
    })
    await expect(keys.find('RS256', 'k1')).rejects.toMatchObject({ ...unreachable, retryAfter: 2 })
    await expect(keys.find('RS256', 'k1')).rejects.toMatchObject(unreachable)
    expect(calls).toBe(1)
    now += discoveryTimes.retry
    await expect(keys.find('RS256', 'k1')).rejects.toMatchObject(unreachable)
    expect(calls).toBe(2)
  })

  test('a set without any key is a valid response', async () => {
    issuer.keys = []
    expect(await keySet().find('RS256', 'k1')).toBeUndefined()
  })
})

describe('an issuer with an invalid response counts as unavailable', () => {
  test.each<[string, string, unknown]>([
    [
      'names another issuer',
      discoveryPath,
      { issuer: 'https://evil.example.com', jwks_uri: 'https://evil.example.com' },
    ],
    ['names no issuer', discoveryPath, { jwks_uri: 'https://evil.example.com' }],
    ['is not an object', discoveryPath, []],
    ['has no list of keys', keysPath, { keys: 'none' }],
    ['has too many keys', keysPath, { keys: Array.from({ length: 101 }, () => ({})) }],
    ['is too long', keysPath, { keys: [], padding: 'x'.repeat(300 * 1024) }],
  ])('the document %s', async (_case, path, document) => {
    issuer.overrides.set(path, (_request, response) => sendJson(response, document))
    await expect(keySet().find('RS256', 'k1')).rejects.toMatchObject(unreachable)
  })

  test('the keys are at a URL that is not trusted', async () => {
    issuer.overrides.set(discoveryPath, (_request, response) =>
      sendJson(response, { issuer: issuer.url, jwks_uri: 'http://keys.example.com/certs' }),
    )
    await expect(keySet().find('RS256', 'k1')).rejects.toMatchObject(unreachable)
  })

  test("an external issuer can't point to a URL on this machine", async () => {
    const elsewhere = 'https://issuer.example.com'
    const asked: string[] = []
    const keys = keySet({
      issuer: elsewhere,
      fetch: async (url) => {
        asked.push(url.href)
        return { issuer: elsewhere, jwks_uri: `${issuer.url}/certs` }
      },
    })
    await expect(keys.find('RS256', 'k1')).rejects.toMatchObject(unreachable)
    expect(asked).toEqual([`${elsewhere}/.well-known/openid-configuration`])
  })

  test.each([discoveryPath, keysPath])('a redirect of %s is not followed', async (path) => {
    issuer.overrides.set(path, (_request, response) => void response.writeHead(302, { location: '/issuer/x' }).end())
    await expect(keySet().find('RS256', 'k1')).rejects.toMatchObject(unreachable)
    expect(issuer.calls).not.toContain('/issuer/x')
  })

  test('text that is not JSON', async () => {
    issuer.overrides.set(keysPath, (_request, response) => void response.end('{"keys": ['))
    await expect(keySet().find('RS256', 'k1')).rejects.toMatchObject(unreachable)
  })

  test('keys that must not verify are left out', async () => {
    const jwk = { ...first.publicKey.export({ format: 'jwk' }), kid: 'k1' }
    const wrong = [
      { ...jwk, use: 'enc' },
      { ...jwk, alg: 'HS256' },
      { ...jwk, key_ops: ['sign'] },
      { ...jwk, kid: 7 },
      { ...first.privateKey.export({ format: 'jwk' }), kid: 'k1' },
      { kty: 'oct', k: 'c2VjcmV0', kid: 'k1' },
      { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'k1' },
      null,
      'text',
    ]
    issuer.overrides.set(keysPath, (_request, response) => sendJson(response, { keys: wrong }))
    expect(await keySet().find('RS256', 'k1')).toBeUndefined()
  })
})

let server: FakeIssuer
beforeEach(async () => {
  server = await FakeIssuer.start([])
})
afterEach(() => server.close())

const limits = { bytes: 1000, millis: 200 }

test('a server that never answers times out', async () => {
  server.overrides.set('/hang', () => {})
  await expect(fetchJson(new URL('/hang', server.url), limits)).rejects.toThrow()
})

test('a server that never ends its response times out', async () => {
  server.overrides.set('/drip', (_request, response) => void response.writeHead(200).write('{'))
  await expect(fetchJson(new URL('/drip', server.url), limits)).rejects.toThrow()
})

test('a response of the maximum size is read, one byte more is not', async () => {
  const text = (size: number) => JSON.stringify('x'.repeat(size - 2))
  server.overrides.set('/fits', (_request, response) => void response.end(text(1000)))
  server.overrides.set('/long', (_request, response) => void response.end(text(1001)))
  expect(await fetchJson(new URL('/fits', server.url), limits)).toHaveLength(998)
  await expect(fetchJson(new URL('/long', server.url), limits)).rejects.toThrow(/longer than 1000 bytes/)
})

test('only servers of the given CAs are trusted', async () => {
  const server = createTlsServer({ key: testServerKey, cert: testServerCertificate }, (_request, response) =>
    response.end('{"a":1}'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const patient = { bytes: 100, millis: 20_000 }
  expect(await fetchJsonTrusting(testServerCertificate)(url, patient)).toEqual({ a: 1 })
  await expect(fetchJson(url, patient)).rejects.toThrow(/certificate/)
})
