import { createSecretKey } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { describe, expect, test } from 'vitest'
import type { IssuerConfig, IssuerTrust } from '#config/configuration/issuer.ts'
import { Attributes } from '#identity/attributes.ts'
import { directoryLink } from '#identity/directory.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { advance, observe } from '#keys/key-ring.ts'
import { KeyStore } from '#keys/key-store.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { prepareMapping } from '#sdk/mapper/mapping.ts'
import { memoryDatabase, rowsOf } from '#testing/databases/memory-database.ts'
import { fakeSecretBox } from '#testing/login/fake-login-services.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { SetClock, tokenIssuer, tokenKeyRings } from '#testing/sts/token-keys-fixture.ts'
import { IssuerServer } from './issuer-server.ts'
import { IssuerStore } from './issuer-store.ts'

const origin = 'https://login.test'
const mount = '/auth/idp/people'
const trust: IssuerTrust = {
  name: 'wiki',
  label: 'The wiki',
  clientId: 'wiki',
  clientSecret: 'a-secret-of-the-wiki-0123456789abcdef',
  redirectUris: ['https://wiki.test/back'],
  postLogoutRedirectUris: [],
  chain: 'strong',
  codeSeconds: 60,
  tokenSeconds: 60,
  skewSeconds: 0,
  signedUserInfo: false,
  deviceGrant: false,
}
const hasUid = { kind: 'present', attribute: 'uid' } as const
const ada = subject('uid=ada,o=Tremolo', { uid: ['ada'], mail: ['ada@corp.test'], memberOf: ['one'] })

interface SetUp {
  readonly allowed?: boolean
  readonly deviceGrant?: boolean
  readonly graceMillis?: number
}

async function setUp(more: SetUp = {}) {
  const now: { subject: Subject; subjects: Map<string, Subject>; allowed: boolean; failure?: Error } = {
    subject: ada,
    subjects: new Map(),
    allowed: more.allowed ?? true,
  }
  const clock = new SetClock()
  clock.now = Date.now()
  const keys = {
    ...tokenIssuer({ endpoint: 'idp:people', keypair: 'idp:people', maxTokenSeconds: 60 }),
    algorithm: 'RS256' as const,
  }
  const database = memoryDatabase(clock.read)
  const rings = tokenKeyRings({ store: new KeyStore(database), clock, issuers: [keys] })
  const mapping = prepareMapping(
    [
      { attribute: 'sub', sourceType: 'user', source: 'uid', path: [] },
      { attribute: 'email', sourceType: 'user', source: 'mail', path: [] },
      { attribute: 'groups', sourceType: 'user', source: 'memberOf', path: [] },
    ],
    noIssues(),
    fakeParseContext(),
  )
  const config: IssuerConfig = {
    name: 'people',
    application: 'people',
    at: 'issuer.yaml',
    mount,
    hosts: ['*'],
    rules: [],
    claims: mapping,
    claimNames: ['sub', 'email', 'groups'],
    trusts: [
      { ...trust, deviceGrant: more.deviceGrant ?? false },
      { ...trust, name: 'other', clientId: 'other', clientSecret: undefined },
    ],
    deviceChain: 'strong',
    refreshGraceMillis: more.graceMillis ?? 0,
    keys,
  }
  const live = new Set(['session-1'])
  const used: string[] = []
  const audited: AuditEntry[] = []
  const counted: string[] = []
  const store = new IssuerStore(database)
  const server = new IssuerServer({
    config,
    claims: await mapping.create(fakeModuleHost()),
    changeSubject: async (subject) => subject,
    store,
    box: fakeSecretBox('issuer record'),
    tokenKeys: rings,
    rateLimits: new MemoryRateLimits(clock.read),
    keys: { secretKeys: async () => [createSecretKey(Buffer.alloc(32, 3))] },
    sessions: { end: async (_login, id) => live.delete(id) },
    use: async (id) => void used.push(id),
    present: async (id) => {
      if (now.failure !== undefined) throw now.failure
      return live.has(id) ? (now.subjects.get(id) ?? now.subject) : undefined
    },
    audit: { append: async (rows) => void audited.push(...rows) },
    clock: clock.read,
    log: silentLogger,
    decide: async () => ({ allowed: now.allowed, verdicts: [] }),
    level: () => 20,
    meter: {
      tokens: (issuer, how, outcome) => void counted.push(`${issuer} ${how} ${outcome}`),
      answered: (issuer, endpoint) => void counted.push(`${issuer} ${endpoint}`),
    },
  })
  const exchange = (path: string, level?: number, form?: Record<string, string>): Exchange => ({
    request: fakeRequest({
      url: `${origin}${mount}${path}`,
      headers: form === undefined ? { accept: 'text/html' } : { 'content-type': 'application/x-www-form-urlencoded' },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form).toString() }),
    }),
    application: 'issuer',
    mount,
    pathInfo: path.split('?')[0] ?? '',
    subject: ada,
    ...(level === undefined ? {} : { session: sessionOf(level, clock) }),
    requireLogin: async () => ({ status: 303, headers: { location: '/auth/form' } }),
  })
  const mint = (sessionId = 'session-1') =>
    server.mint({
      issuer: 'people',
      trust: 'wiki',
      subject: ada,
      sessionId,
      authenticated: clock.read(),
      how: 'login',
      request: fakeRequest({ url: origin }),
    })
  const published = async () => JSON.parse(String((await server.handle(exchange('/certs'))).body)) as JSONWebKeySet
  const refresh = async (token: string) => {
    const { clientId, clientSecret = '' } = trust
    const form = { grant_type: 'refresh_token', refresh_token: token, client_id: clientId, client_secret: clientSecret }
    return server.handle(exchange('/token', undefined, form))
  }
  return {
    server,
    counted,
    used,
    now,
    clock,
    rings,
    live,
    audited,
    database,
    store,
    exchange,
    mint,
    published,
    refresh,
  }
}

const sessionOf = (level: number, clock: SetClock) => ({
  id: 'session-1',
  chain: 'test',
  level,
  started: clock.read(),
  authenticated: clock.read(),
  expires: new Date(clock.now + 900_000),
  read: async () => undefined,
  write: async () => {},
  mark: async () => {},
})

const json = (answer: GatewayResponse) => JSON.parse(String(answer.body)) as Record<string, string>
const asked = `/auth?${new URLSearchParams({
  client_id: 'wiki',
  redirect_uri: 'https://wiki.test/back',
  scope: 'openid',
  response_type: 'code',
  state: 's',
})}`

describe('an issuer', () => {
  test('tokens verify before, during and after a key rotation', async () => {
    const { mint, rings, clock, published } = await setUp()
    const verified = async (token: string | undefined) =>
      await jwtVerify(token ?? '', createLocalJWKSet(await published()), {
        issuer: `${origin}${mount}`,
        audience: 'wiki',
      })
    const kidOf = (token: string | undefined) => decodeProtectedHeader(token ?? '').kid
    const before = (await mint())?.idToken
    expect((await verified(before)).payload).toMatchObject({ sub: 'ada', email: 'ada@corp.test', groups: ['one'] })

    await rings.rotate('idp:people')
    const both = await published()
    expect(both.keys).toHaveLength(2)
    const during = (await mint())?.idToken
    expect(kidOf(during)).toBe(kidOf(before))
    await verified(during)

    const look = () =>
      rings.update('idp:people', (ring, policy, now) => {
        const kids = new Set(ring.keys.map(({ kid }) => kid))
        return advance(observe(ring, { at: now, kids, cacheSeconds: 300 }), policy, now)
      })
    await look()
    clock.pass(20 * 60)
    await look()
    const after = (await mint())?.idToken
    expect(kidOf(after)).toBe(both.keys[1]?.kid)
    await verified(after)
    await verified(before)
    clock.pass(60 * 60)
    await look()
    expect((await published()).keys.map(({ kid }) => kid)).toEqual([kidOf(after)])
    await expect(verified(before)).rejects.toThrow()
  })

  test('stores records hashed and encrypted', async () => {
    const { mint, database } = await setUp()
    const tokens = await mint()
    const kept = JSON.stringify(await rowsOf(database, 'issuer_records'))
    expect(kept).not.toContain(tokens?.refreshToken ?? '')
    expect(kept).not.toContain('ada@corp.test')
    expect(kept).not.toContain('uid=ada')
    expect(kept).not.toContain('session-1')
  })

  test('a refresh token works once, while the session lasts', async () => {
    const { mint, refresh, live, server } = await setUp()
    const { refreshToken = '' } = (await mint()) ?? {}
    expect(await server.refreshState(refreshToken)).toBe('unused')
    const next = json(await refresh(refreshToken))
    expect(next['id_token']).toBeDefined()
    expect(await server.refreshState(refreshToken)).toBe('used')
    live.clear()
    const ended = await refresh(next['refresh_token'] ?? '')
    expect([ended.status, json(ended)['error']]).toEqual([400, 'invalid_grant'])
    expect(await server.refreshState(next['refresh_token'] ?? '')).toBe('ended')
    expect(await server.refreshState('made-up')).toBe('ended')
    expect(await server.refreshState(refreshToken)).toBe('ended')
  })

  test('a refresh token that was just replaced returns the one that replaced it, also at the same time', async () => {
    const { mint, refresh, clock, audited } = await setUp({ graceMillis: 30_000 })
    const { refreshToken: first = '' } = (await mint()) ?? {}
    const both = (await Promise.all([refresh(first), refresh(first)])).map(json)
    const second = both[0]?.['refresh_token'] ?? ''
    expect(both).toMatchObject([{ id_token: expect.any(String) }, { id_token: expect.any(String) }])
    expect([second === first, both[1]?.['refresh_token']]).toEqual([false, second])
    const third = json(await refresh(second))['refresh_token'] ?? ''
    expect(json(await refresh(first))['refresh_token']).toBe(third)
    expect(audited.at(-1)?.reason).toContain('"refreshToken":"just replaced"')
    expect(audited.filter(({ reason = '' }) => reason.includes('just replaced'))).toHaveLength(2)
    clock.now += 29_000
    expect(json(await refresh(second))['refresh_token']).toBe(third)
    expect((await refresh(third)).status).toBe(200)
  })

  test('a refresh token whose replacement could not be stored still leads to one that works', async () => {
    const { mint, refresh, store } = await setUp({ graceMillis: 30_000 })
    const { refreshToken: first = '' } = (await mint()) ?? {}
    const put = store.put.bind(store)
    store.put = async (record, expected) => {
      if (record.model === 'RefreshToken') throw new GatewayError('TARGET_UNREACHABLE', 'the database is away')
      return put(record, expected)
    }
    await refresh(first).catch(() => {})
    store.put = put
    const [second, again] = (await Promise.all([refresh(first), refresh(first)])).map(json)
    expect(again?.['refresh_token']).toBe(second?.['refresh_token'])
    const third = await refresh(second?.['refresh_token'] ?? '')
    expect([third.status, json(third)['error']]).toEqual([200, undefined])
    expect(json(await refresh(first))['refresh_token']).toBe(json(third)['refresh_token'])
    expect((await refresh(json(third)['refresh_token'] ?? '')).status).toBe(200)
  })

  test('after that it was copied, and everything of its grant ends', async () => {
    const { mint, refresh, clock } = await setUp({ graceMillis: 30_000 })
    const { refreshToken: first = '' } = (await mint()) ?? {}
    const second = json(await refresh(first))['refresh_token'] ?? ''
    clock.now += 31_000
    for (const token of [first, second]) {
      const answer = await refresh(token)
      expect([answer.status, json(answer)['error']]).toEqual([400, 'invalid_grant'])
    }
  })

  test('a replaced refresh token is not shown to be valid, ends with its session, and no other client can use it', async () => {
    const { mint, refresh, live, server, exchange } = await setUp({ graceMillis: 30_000 })
    const { refreshToken: first = '' } = (await mint()) ?? {}
    await refresh(first)
    const client = { client_id: trust.clientId, client_secret: trust.clientSecret ?? '' }
    const introspected = await server.handle(exchange('/introspect', undefined, { token: first, ...client }))
    expect(json(introspected)).toEqual({ active: false })
    const form = { grant_type: 'refresh_token', refresh_token: first, client_id: 'other' }
    const other = json(await server.handle(exchange('/token', undefined, form)))
    expect([other['error'], other['refresh_token']]).toEqual(['invalid_grant', undefined])
    live.clear()
    expect((await refresh(first)).status).toBe(400)
  })

  test('without a grace, only one of two concurrent refreshes succeeds', async () => {
    const { mint, refresh } = await setUp()
    const { refreshToken = '' } = (await mint()) ?? {}
    const answers = await Promise.all([refresh(refreshToken), refresh(refreshToken)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('a refresh and userinfo return the current data of the directory', async () => {
    const { mint, refresh, now, exchange, server, audited } = await setUp()
    const link = directoryLink({ dn: ada.dn, attributes: ada.attributes }, { filter: hasUid, uidAttr: 'uid' })
    now.subject = { ...ada, link, attributes: Attributes.from({ uid: ['ada'], mail: ['new@corp.test'] }) }
    const userInfo = async (token = '') => {
      const asking = exchange('/userinfo')
      const headers = { ...asking.request.headers, authorization: `Bearer ${token}` }
      return server.handle({ ...asking, request: { ...asking.request, headers } })
    }
    const first = json(await refresh((await mint())?.refreshToken ?? ''))
    expect(decodeJwt(first['id_token'] ?? '')).toMatchObject({ sub: 'ada', email: 'new@corp.test' })
    expect(decodeJwt(first['id_token'] ?? '')).not.toHaveProperty('groups')
    expect(json(await userInfo(first['access_token']))).toMatchObject({ email: 'new@corp.test' })

    now.allowed = false
    const refused = await refresh(first['refresh_token'] ?? '')
    expect([refused.status, json(refused)['error']]).toEqual([400, 'invalid_grant'])
    expect((await userInfo(first['access_token'])).status).toBe(401)
    expect(audited.at(-1)).toMatchObject({ action: 'refuse', subject: 'ada' })

    now.allowed = true
    now.subject = { ...now.subject, attributes: new Attributes() }
    expect((await refresh(first['refresh_token'] ?? '')).status).toBe(400)
    now.subject = { ...now.subject, attributes: Attributes.from({ uid: ['somebody-else'] }) }
    expect((await refresh(first['refresh_token'] ?? '')).status).toBe(400)
    now.subject = { ...now.subject, attributes: ada.attributes }
    expect((await refresh(first['refresh_token'] ?? '')).status).toBe(200)
  })

  test('a directory that does not answer is reported, and costs no token', async () => {
    const { mint, refresh, now, counted } = await setUp()
    const { refreshToken = '' } = (await mint()) ?? {}
    now.failure = new GatewayError('TARGET_UNREACHABLE', 'the directory of 10.0.0.1', { retryAfter: 5 })
    const failed = await refresh(refreshToken)
    expect([failed.status, failed.headers['retry-after'], json(failed)]).toEqual([
      503,
      '5',
      { error: 'server_error', error_description: 'A downstream system did not answer.' },
    ])
    expect(counted).toContain('people refresh_token failed')
    delete now.failure
    expect((await refresh(refreshToken)).status).toBe(200)
  })

  test('tokens and responses are counted, with labels from the configuration only', async () => {
    const { mint, refresh, counted, exchange, server, live } = await setUp()
    const { refreshToken = '' } = (await mint()) ?? {}
    await refresh(refreshToken)
    live.clear()
    await refresh('made-up')
    await server.handle(exchange('/token', undefined, { grant_type: 'whatever-a-stranger-says' }))
    await server.handle(exchange('/.well-known/openid-configuration'))
    await server.handle(exchange('/whatever-a-stranger-says')).catch(() => {})
    expect(counted).toEqual([
      'people login issued',
      'people refresh_token issued',
      'people token',
      'people refresh_token refused',
      'people token',
      'people other refused',
      'people token',
      'people discovery',
      'people other',
    ])
  })

  test('several logins to one application continue independently', async () => {
    const { mint, refresh } = await setUp()
    const both = [(await mint())?.refreshToken ?? '', (await mint())?.refreshToken ?? '']
    for (const token of both) expect((await refresh(token)).status).toBe(200)
  })

  test('new tokens and a refresh count as use of their session; a failed refresh does not', async () => {
    const { mint, refresh, used } = await setUp()
    const { refreshToken = '' } = (await mint()) ?? {}
    expect(used).toEqual(['session-1'])
    await refresh(refreshToken)
    expect(used).toEqual(['session-1', 'session-1'])
    await refresh(refreshToken)
    expect(used).toHaveLength(2)
  })

  test('every token is audited with its user, and a user that no rule allows gets none', async () => {
    const allowed = await setUp()
    const tokens = await allowed.mint()
    await allowed.refresh(tokens?.refreshToken ?? '')
    expect(allowed.audited).toMatchObject([
      { subject: 'ada', target: 'wiki', kind: 'token', action: 'issue', value: tokens?.claims['jti'] },
      { subject: 'ada', target: 'wiki', kind: 'token', action: 'issue', value: expect.any(String) },
    ])
    const denied = await setUp({ allowed: false })
    expect(await denied.mint()).toBeUndefined()
    await expect(denied.server.handle(denied.exchange(asked, 20))).rejects.toMatchObject({ status: 403 })
    expect(denied.audited.map(({ action }) => action)).toEqual(['refuse', 'refuse'])
  })

  test('a session of a lower level must step up, one of the same level is enough', async () => {
    const { server, exchange } = await setUp()
    const good = await server.handle(exchange(asked, 20))
    expect(String(good.headers['location'])).toMatch(/^https:\/\/wiki\.test\/back\?code=/)
    expect(good.headers['set-cookie']).toBeUndefined()
    const low = await server.handle(exchange(asked, 10))
    expect(String(low.headers['location'])).toMatch(/^\/auth\/idp\/people\/interaction\//)
    expect((await server.handle(exchange(`${asked}&prompt=none`, 10))).headers['location']).toContain('login_required')
  })

  test.each(['/TOKEN', '/Token', '/token/', '/token?', '/token#'])(
    'no token is issued by %s without audit',
    async (path) => {
      const { mint, server, exchange, audited } = await setUp()
      const { refreshToken = '' } = (await mint()) ?? {}
      const { clientId, clientSecret = '' } = trust
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId }
      const call = exchange('/token', undefined, { ...form, client_secret: clientSecret })
      const answer = await server.handle({ ...call, pathInfo: path }).catch((error: { status: number }) => error)
      expect([answer.status, audited.length]).toEqual([404, 1])
    },
  )

  test.each(['//evil.test/auth', '/nothing', '/session/end/nothing', '/AUTH', '/DEVICE/AUTH', '/Certs'])(
    'has nothing at %s',
    async (path) => {
      const { server, exchange } = await setUp()
      const answer = await server
        .handle({ ...exchange('/x'), pathInfo: path })
        .catch((error: { status: number }) => error)
      expect(answer.status).toBe(404)
    },
  )

  test('devices are announced and served only if an application may use them', async () => {
    const announced = async (deviceGrant: boolean) => {
      const { server, exchange } = await setUp({ deviceGrant })
      const discovery = json(await server.handle(exchange('/.well-known/openid-configuration')))
      const [page, begun] = await Promise.all(
        [exchange('/device'), exchange('/device/auth', undefined, { client_id: 'wiki' })].map((call) =>
          server.handle(call).catch((error: { status: number }) => error),
        ),
      )
      const grants = String(discovery['grant_types_supported'])
      return [discovery['device_authorization_endpoint'], grants.includes('device_code'), page?.status, begun?.status]
    }
    expect(await announced(false)).toEqual([undefined, false, 404, 404])
    expect(await announced(true)).toEqual([`${origin}${mount}/device/auth`, true, 303, 401])
  })

  test("device codes can't be guessed by logging in often", async () => {
    const { server, exchange, clock } = await setUp({ deviceGrant: true })
    const guess = (session: string, path = '/device') => {
      const call = exchange('/device', 20, { xsrf: 'x', user_code: 'XXXX-XXXX' })
      return server
        .handle({ ...call, session: { ...sessionOf(20, clock), id: session }, pathInfo: path })
        .catch((error: { status: number }) => error)
    }
    for (let i = 0; i < 10; i++) await guess(`session-${i}`)
    expect([(await guess('another')).status, (await guess('another', '/device/')).status]).toEqual([429, 404])
  })

  test('if two users confirm a device at once, only one succeeds and is logged in', async () => {
    const { server, exchange, clock, live, store, now } = await setUp({ deviceGrant: true })
    const { clientId, clientSecret = '' } = trust
    const client = { client_id: clientId, client_secret: clientSecret }
    const begun = json(await server.handle(exchange('/device/auth', undefined, { ...client, scope: 'openid' })))
    const users = ['ada', 'bob'].map((uid) => {
      const of = subject(`uid=${uid},o=Tremolo`, { uid: [uid] })
      live.add(uid)
      now.subjects.set(uid, of)
      const visit = (form?: Record<string, string>) =>
        server.handle({ ...exchange('/device', 20, form), subject: of, session: { ...sessionOf(20, clock), id: uid } })
      return { uid, visit }
    })
    const forms = await Promise.all(users.map(async ({ visit }) => String((await visit()).body)))
    // Both read the code before one of them writes it.
    const both = Promise.withResolvers<void>()
    const find = store.findByUserCode.bind(store)
    let reads = 0
    store.findByUserCode = async (key, at) => {
      const found = await find(key, at)
      if (++reads === 2) both.resolve()
      await both.promise
      return found
    }
    const answers = await Promise.all(
      users.map(async ({ uid, visit }, i) => {
        const xsrf = /name="xsrf" value="([^"]+)"/.exec(forms[i] ?? '')?.[1] ?? ''
        const page = String((await visit({ xsrf, user_code: begun['user_code'] ?? '', confirm: 'yes' })).body)
        return page.includes('The device is logged in') ? [uid] : []
      }),
    )
    const poll = { ...client, grant_type: 'urn:ietf:params:oauth:grant-type:device_code' }
    const polls = await Promise.all(
      Array.from({ length: 4 }, () =>
        server.handle(exchange('/token', undefined, { ...poll, device_code: begun['device_code'] ?? '' })),
      ),
    )
    const tokens = polls.flatMap((answer) => json(answer)['id_token'] ?? [])
    expect(tokens).toHaveLength(1)
    expect(answers.flat()).toEqual([decodeJwt(tokens[0] ?? '').sub])
  })

  test("anonymous callers can't fill the database by starting flows", async () => {
    const { server, exchange } = await setUp()
    for (let i = 0; i < 120; i++) await server.handle(exchange(asked))
    await expect(server.handle(exchange(asked))).rejects.toMatchObject({ status: 429 })
  })

  test("a token that can't be audited is not issued", async () => {
    const { mint, refresh, audited } = await setUp()
    const { refreshToken = '' } = (await mint()) ?? {}
    audited.push = () => {
      throw new Error('the audit is full')
    }
    const answer = await refresh(refreshToken)
    expect([answer.status, json(answer)['id_token']]).toEqual([500, undefined])
  })
})
