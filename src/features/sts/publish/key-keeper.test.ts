import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import type { PublishDestination, TokenIssuer } from '#config/configuration/token-keys.ts'
import { type LogFields, type Logger, silentLogger } from '#kernel/logger.ts'
import { keyIn } from '#keys/key-ring.ts'
import { KeyStore } from '#keys/key-store.ts'
import { readPrivateKey } from '#keys/private-key-file.ts'
import type { TokenKeyRings } from '#keys/token-key-rings.ts'
import { signedToken } from '#protocols/sts/signed-token.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { badKeys, goodKey } from '#testing/sts/bad-keys.ts'
import { type IssuerSite, issuerSite } from '#testing/sts/issuer-site.ts'
import { SetClock, tokenIssuer, tokenKeyRings } from '#testing/sts/token-keys-fixture.ts'
import { KeeperLoop, KeyKeeper, type KeyMeter } from './key-keeper.ts'
import { folderPublisher, type Publisher } from './publishers.ts'

let clock: SetClock
let store: KeyStore
let folder: string
let site: IssuerSite
let issuer: TokenIssuer
let rings: TokenKeyRings
let keeper: KeyKeeper
let failing: Error | undefined
let puts: number
let metered: string[]
let sourceOk: boolean | undefined
let given: Map<string, KeyObject | Error>
let rows: AuditEntry[]
let lines: string[]

const line =
  (level: string) =>
  (message: string, fields: LogFields = {}): void =>
    void lines.push(`${level} ${message} ${fields['endpoint']} ${fields['kid']}`)
const log: Logger = { ...silentLogger, info: line('info'), warn: line('warn'), error: line('error') }
/** The audit entries about keys, with the kid. */
const audited = () =>
  rows.map(({ kind, target, reason, value }) => {
    const { event } = JSON.parse(reason ?? '{}') as { event: string }
    return `${kind} ${target} ${event} ${value ?? ''}`.trim()
  })

const meter: KeyMeter = {
  published: (_endpoint, destination, ok) => metered.push(`${destination.split(' ')[0]} ${ok}`),
  readable: (_endpoint, ok) => metered.push(`readable ${ok}`),
  source: (_endpoint, ok) => {
    sourceOk = ok
  },
}

const open = (destination: PublishDestination): Publisher => ({
  async put(files, signal) {
    puts++
    if (failing !== undefined) throw failing
    if (destination.type === 'folder') await folderPublisher(destination.folder).put(files, signal)
  },
})

const keeperOf = (worker: string, its = rings) =>
  new KeyKeeper({ rings: its, store, worker, clock: clock.read, log, meter, open, random: () => 0 })

beforeEach(async () => {
  clock = new SetClock()
  store = new KeyStore(memoryDatabase(clock.read))
  folder = temporaryFolder()
  site = await issuerSite(folder, '/aws')
  issuer = tokenIssuer({ issuer: site.url, destinations: [{ type: 'folder', folder }] })
  given = new Map()
  rows = []
  lines = []
  rings = tokenKeyRings({ store, clock, given, rows, log, issuers: [issuer] })
  keeper = keeperOf('one')
  failing = undefined
  puts = 0
  metered = []
})

const published = async () =>
  JSON.parse(await readFile(join(folder, 'certs'), 'utf8')) as { keys: { kid: string; alg: string }[] }
const states = async () => (await keeper.pass(issuer))?.ring.keys.map(({ state }) => state)

describe('keeping keys', () => {
  test('publishes at start and after changes, and not otherwise', async () => {
    await keeper.pass(issuer)
    await keeper.pass(issuer)
    expect(puts).toBe(1)
    await rings.rotate('aws')
    await keeper.pass(issuer)
    expect(puts).toBe(2)
    expect((await published()).keys).toHaveLength(2)
    await rm(join(folder, 'certs'))
    await keeperOf('another start').pass(issuer)
    expect((await published()).keys).toHaveLength(2)
    await keeper.pass(issuer, true)
    expect(puts).toBe(4)
  })

  test('a process that was suspended while writing, and replaced newer documents, writes again', async () => {
    await keeper.pass(issuer)
    const other = tokenKeyRings({ store, clock, given, rows, log, issuers: [issuer] })
    let isSuspended = true
    const slow: typeof open = (destination) => ({
      async put(files, signal) {
        if (isSuspended) {
          isSuspended = false
          clock.pass(121)
          await other.rotate('aws')
          await keeperOf('two', other).pass(issuer)
        }
        await open(destination).put(files, signal)
      },
    })
    const parts = { rings, store, clock: clock.read, log, meter, random: () => 0 }
    const suspended = new KeyKeeper({ ...parts, worker: 'three', open: slow })
    expect(await suspended.pass(issuer)).toBeUndefined()
    expect((await published()).keys).toHaveLength(1)
    await suspended.pass(issuer)
    expect((await published()).keys).toHaveLength(2)
  })

  test('C5: rotates without any time at which a consumer rejects, from publication to the end', async () => {
    await keeper.pass(issuer)
    const first = (await rings.active('aws')).kid
    const next = (await rings.rotate('aws')).keys.find(({ state }) => state === 'next')?.kid
    const tokens: { jwt: string; until: number }[] = []
    const seen = new Set<string>()
    let copy = { keys: await published(), at: clock.now }
    for (let minute = 0; minute < 60; minute++) {
      await keeper.pass(issuer)
      const key = await rings.active('aws')
      seen.add(key.kid)
      const jwt = await signedToken(new Map([['exp', clock.now / 1000 + 900]]), key)
      tokens.push({ jwt, until: clock.now + 900_000 })
      // A copy that is kept exactly as long as allowed.
      if (clock.now - copy.at >= 300_000) copy = { keys: await published(), at: clock.now }
      const keySet = createLocalJWKSet(copy.keys as Parameters<typeof createLocalJWKSet>[0])
      for (const token of tokens.filter(({ until }) => until > clock.now)) {
        await jwtVerify(token.jwt, keySet, { currentDate: clock.read() })
      }
      clock.pass(60)
    }
    expect([...seen]).toEqual([first, next])
    expect((await published()).keys.map(({ kid }) => kid)).toEqual([next])
    expect((await keeper.pass(issuer))?.ring.keys).toHaveLength(1)
  })

  test.each([
    ['a day', { 'cache-control': 'public, max-age=86400' }, 86_400],
    ['an unknown time', {}, 3600],
    ['a day in a cache on the way', { 'cache-control': 'max-age=60, s-maxage=86400', age: '5' }, 86_460],
  ])('waits for documents that are cached for %s', async (_name, headers, seconds) => {
    site.headers = headers
    await keeper.pass(issuer)
    await rings.rotate('aws')
    await keeper.pass(issuer)
    clock.pass(seconds)
    expect(await states()).toEqual(['active', 'next'])
    clock.pass(120)
    await keeper.pass(issuer, true)
    expect((await rings.tend('aws')).keys.map(({ state }) => state).sort()).toEqual(['active', 'retiring'])
  })

  test('a key is not used while the issuer does not show it, even long after it was written', async () => {
    await keeper.pass(issuer)
    await rings.rotate('aws')
    const old = await published()
    site.override = (path, answer) => {
      const body = path.endsWith('/certs') ? old : { issuer: site.url, jwks_uri: `${site.url}/certs` }
      answer.writeHead(200).end(JSON.stringify({ ...body, id_token_signing_alg_values_supported: ['ES256'] }))
    }
    for (let i = 0; i < 30; i++) {
      await keeper.pass(issuer)
      clock.pass(300)
    }
    expect(await states()).toEqual(['active', 'next'])
    site.override = undefined
    await keeper.pass(issuer, true)
    clock.pass(3600 + 121)
    await keeper.pass(issuer, true)
    expect(await states()).toEqual(['retiring', 'active'])
  })

  test('a key of a trust domain is not used while the bundle lacks it', async () => {
    const trustDomain = { ...issuer, isTrustDomain: true }
    rings.configure([trustDomain])
    const kinds = async () => (await keeper.pass(trustDomain, true))?.ring.keys.map(({ state }) => state)
    await keeper.pass(trustDomain)
    const bundle = async () => JSON.parse(await readFile(join(folder, 'bundle'), 'utf8')) as { keys: object[] }
    const old = await bundle()
    expect(old).toMatchObject({ spiffe_refresh_hint: 300, keys: [{ use: 'jwt-svid', kty: 'EC' }] })
    await rings.rotate('aws')
    await keeper.pass(trustDomain)
    const [first, second] = (await bundle()).keys
    expect([first, second]).toMatchObject([old.keys[0] ?? {}, { use: 'jwt-svid' }])
    // The others are as published.
    site.override = (path, answer) => {
      if (path.endsWith('/bundle')) answer.writeHead(200).end(JSON.stringify(old))
      else answer.writeHead(200).end(readFileSync(join(folder, path.slice('/aws'.length))))
    }
    for (let i = 0; i < 30; i++) {
      await kinds()
      clock.pass(300)
    }
    expect(await kinds()).toEqual(['active', 'next'])
    site.override = undefined
    await kinds()
    clock.pass(3600 + 121)
    await kinds()
    expect(await kinds()).toEqual(['retiring', 'active'])
  })

  test.each([
    [
      'a redirect',
      (answer: { writeHead(n: number, h?: object): { end(): void } }) =>
        answer.writeHead(302, { location: '/x' }).end(),
    ],
    ['an error', (answer: { writeHead(n: number, h?: object): { end(): void } }) => answer.writeHead(500).end()],
  ])('%s at the issuer is reported, and retried with growing pauses', async (_name, respond) => {
    site.override = (_path, answer) => respond(answer)
    const first = await keeper.pass(issuer)
    expect(first?.publications.get('issuer')).toMatchObject({ failures: 1, retryAt: clock.now + 15_000 })
    const { length } = site.calls
    clock.pass(14)
    await keeper.pass(issuer)
    expect(site.calls).toHaveLength(length)
    clock.pass(1)
    expect((await keeper.pass(issuer))?.publications.get('issuer')).toMatchObject({
      failures: 2,
      retryAt: clock.now + 30_000,
    })
    expect(metered).toContain('readable false')
  })

  test('documents of another issuer, or with another key of the same name, do not count', async () => {
    await keeper.pass(issuer)
    await rings.rotate('aws')
    const { keys } = await rings.documents('aws')
    const forged = { keys: keys.keys.map((key) => ({ ...key, x: 'forged' })) }
    let named = site.url
    site.override = (path, answer) => {
      const found = { issuer: named, jwks_uri: `${named}/certs`, id_token_signing_alg_values_supported: ['ES256'] }
      answer.writeHead(200).end(JSON.stringify(path.endsWith('/certs') ? forged : found))
    }
    const outcome = await keeper.pass(issuer, true)
    expect(outcome?.ring.keys.map(({ visible }) => visible)).toEqual([null, null])
    expect(metered.at(-1)).toBe('readable false')
    named = 'https://evil.example.com'
    expect((await keeper.pass(issuer, true))?.publications.get('issuer')?.error).toContain('another issuer')
  })

  test('a failed write is reported and retried', async () => {
    failing = new Error('no space')
    const name = `folder ${folder}`
    expect((await keeper.pass(issuer))?.publications.get(name)).toMatchObject({ failures: 1, error: 'no space' })
    failing = undefined
    await keeper.pass(issuer)
    expect(puts).toBe(1)
    clock.pass(15)
    expect((await keeper.pass(issuer))?.publications.get(name)).toMatchObject({ failures: 0, error: null })
    expect(metered.filter((each) => each.startsWith('folder'))).toEqual(['folder false', 'folder true'])
  })

  test('overwritten documents at the issuer are restored', async () => {
    await keeper.pass(issuer)
    await rm(join(folder, 'certs'))
    await folderPublisher(folder).put(
      [{ path: 'certs', text: '{"keys":[]}', contentType: '', cacheControl: '' }],
      AbortSignal.timeout(1000),
    )
    clock.pass(300)
    await keeper.pass(issuer)
    await keeper.pass(issuer)
    expect((await published()).keys).toHaveLength(1)
  })

  test('without reading back, written documents count after an hour or the known lifetime', async () => {
    for (const [cdnSeconds, seconds] of [
      [undefined, 3600],
      [1000, 1300],
    ] as const) {
      const endpoint = `written ${seconds}`
      const trusting = { ...issuer, endpoint, readBack: 'written', cdnSeconds } as const
      rings.configure([trusting])
      failing = undefined
      await keeper.pass(trusting)
      await rings.rotate(endpoint)
      failing = new Error('full')
      await keeper.pass(trusting)
      clock.pass(10_000)
      await keeper.pass(trusting, true)
      expect((await rings.tend(endpoint)).keys.map(({ state }) => state)).toEqual(['active', 'next'])
      failing = undefined
      await keeper.pass(trusting, true)
      clock.pass(seconds + 119)
      await keeper.pass(trusting, true)
      expect((await rings.tend(endpoint)).keys.map(({ state }) => state)).toEqual(['active', 'next'])
      clock.pass(1)
      await keeper.pass(trusting, true)
      expect((await rings.tend(endpoint)).keys.map(({ state }) => state)).toEqual(['retiring', 'active'])
    }
  })
})

describe('a configured key', () => {
  const badForEs256 = badKeys().filter(({ reason }) => !reason.startsWith('signs ES256'))
  /** As it comes from a file or a Secret. */
  const give = (text: string): void => {
    try {
      given.set('aws', readPrivateKey(text, 'tls.key of the secret aws', 'ES256'))
    } catch (error) {
      given.set('aws', error as Error)
    }
  }

  test.each(badForEs256)(
    'that is invalid and arrives while running is rejected, and the old one stays: $what',
    async ({ text }) => {
      give(goodKey('ES256'))
      await keeper.pass(issuer)
      expect(sourceOk).toBe(true)
      const { kid } = await rings.active('aws')
      give(text)
      for (let i = 0; i < 3; i++) {
        clock.pass(15)
        const outcome = await keeper.pass(issuer)
        expect(outcome?.ring.keys.map((key) => key.kid)).toEqual([kid])
        expect(outcome?.publications.get('key source')?.error).toContain('tls.key of the secret aws')
      }
      expect(sourceOk).toBe(false)
      expect((await rings.active('aws')).kid).toBe(kid)
      expect(audited().filter((event) => event.includes('refused'))).toEqual(['key aws given key refused'])
      expect(lines.filter((each) => each.includes('refused'))).toEqual(['error given key refused aws '])
      give(goodKey('ES256'))
      const mended = await keeper.pass(issuer)
      expect(mended?.publications.has('key source')).toBe(false)
      expect(mended?.ring.keys.map(({ state }) => state)).toEqual(['active', 'next'])
      expect(sourceOk).toBe(true)
    },
  )

  test.each(badForEs256)(
    'that is invalid from the start stops the endpoint, with the reason: $what',
    async ({ text }) => {
      give(text)
      await expect(keeper.pass(issuer)).rejects.toThrow('tls.key of the secret aws')
      expect([sourceOk, await store.list()]).toEqual([false, []])
    },
  )
})

describe('the life of a key', () => {
  test('is logged and audited once for each step, by the process that made it', async () => {
    const other = keeperOf('two', tokenKeyRings({ store, clock, given, rows, log, issuers: [issuer] }))
    await keeper.pass(issuer)
    const first = (await rings.active('aws')).kid
    const second = keyIn(await rings.rotate('aws', 'ann'), 'next')?.kid
    for (let minute = 0; minute < 60; minute++) {
      await keeper.pass(issuer)
      await other.pass(issuer)
      clock.pass(60)
    }
    const events = [
      `key created ${first}`,
      `key activated ${first}`,
      `keys published ${first}`,
      `key read back from the issuer ${first}`,
      `key created ${second}`,
      `keys published ${first}`,
      `key read back from the issuer ${second}`,
      `key retired ${first}`,
      `key activated ${second}`,
      `keys published ${second}`,
      `key removed ${first}`,
      `keys published ${second}`,
    ]
    expect(audited().sort()).toEqual(events.map((event) => `key aws ${event}`).sort())
    const logged = lines.filter((each) => !each.includes('again')).map((each) => each.replace(/^info (.*) aws /, '$1 '))
    expect(logged.sort()).toEqual([...events].sort())
    expect(rows.filter(({ requestor }) => requestor === 'ann').map(({ value }) => value)).toEqual([second])
  })

  test('includes failures to publish, audited at the first of several, and a replaced next key', async () => {
    failing = new Error('no space')
    await keeper.pass(issuer)
    clock.pass(20)
    await keeper.pass(issuer)
    const kid = (await rings.active('aws')).kid
    expect(audited().filter((event) => event.includes('not published'))).toEqual([`key aws keys not published ${kid}`])
    expect(lines.filter((each) => each.startsWith('error keys not published'))).toHaveLength(2)
    failing = undefined
    clock.pass(60)
    await keeper.pass(issuer)
    expect(audited()).toContain(`key aws keys published ${kid}`)
    const dropped = keyIn(await rings.rotate('aws'), 'next')?.kid
    given.set('aws', createPrivateKey(goodKey('ES256')))
    await keeper.pass(issuer)
    expect(audited()).toContain(`key aws next key replaced before it signed ${dropped}`)
  })
})

describe('several gateways', () => {
  test('one publishes at a time, and another takes over from one that died', async () => {
    await keeper.pass(issuer)
    await store.claim('aws', 'dead', 60_000)
    expect(await keeper.pass(issuer)).toBeUndefined()
    clock.pass(61)
    expect(await keeper.pass(issuer)).toBeDefined()
  })
})

test('a hanging write is given up when the gateway stops, and does not block others', async () => {
  const stop = new AbortController()
  const hanging = new KeyKeeper({
    ...{ rings, store, worker: 'hanging', clock: clock.read, log: silentLogger, meter, random: () => 0 },
    open: () => ({
      put: (_files, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('cut off')))
          stop.abort()
        }),
    }),
  })
  const outcome = await hanging.pass(issuer, false, stop.signal)
  expect(outcome?.publications.get(`folder ${folder}`)?.error).toBe('cut off')
  clock.pass(15)
  expect((await keeper.pass(issuer))?.publications.get(`folder ${folder}`)?.failures).toBe(0)
})

test('the loop continues when an endpoint fails, and ends when it is closed', async () => {
  const passed: string[] = []
  const issuers = ['bad', 'a', 'b', 'c', 'd', 'e'].map((endpoint) => tokenIssuer({ endpoint }))
  const loop = new KeeperLoop({
    keeper: {
      pass: async ({ endpoint }) => {
        passed.push(endpoint)
        if (endpoint === 'bad') throw new Error('bad')
        return undefined
      },
    },
    rings: { issuers },
    log: silentLogger,
    everyMillis: 1,
  })
  loop.start()
  loop.wake()
  await expect.poll(() => passed.filter((name) => name === 'e').length).toBeGreaterThan(2)
  await loop.close()
  const { length } = passed
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(passed).toHaveLength(length)
})
