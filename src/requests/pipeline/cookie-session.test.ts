import { describe, expect, test } from 'vitest'
import type { CookieConfig } from '#config/configuration/configuration.ts'
import { Dn } from '#identity/dn.ts'
import { silentLogger } from '#kernel/logger.ts'
import { LoginRoutes } from '#requests/login/login-routes.ts'
import { type Chain, ChainRunner } from '#requests/routing/chain.ts'
import { type Application, Routes, type Url } from '#requests/routing/routes.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { AuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'
import { fakeLoginServices } from '#testing/login/fake-login-services.ts'
import { memorySessionStore } from '#testing/login/memory-session-store.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { createPipeline } from './pipeline.ts'

const origin = 'https://portal.test'
const cookies: CookieConfig = {
  name: 's',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 900,
  logoutUri: '/portal/logout',
}

/**
 * `/portal` at level 10, `/portal/high` at 20, `/portal/open` at 0; `/other` and `/api` are other applications, and
 * everyone may use `/portal/all` and `/other/all`.
 */
function setUp({ takesForms = false, idleSeconds = cookies.idleSeconds } = {}) {
  let now = 0
  const begun: string[] = []
  const mechanism: AuthMechanism = {
    async begin({ request, root }) {
      begun.push(root)
      if (request.headers['authorization'] === undefined) return { kind: 'rejected', reason: 'no token' }
      const [, login] = String(request.headers['authorization']).split(' ')
      return { kind: 'authenticated', subject: subject(`uid=${login},o=Tremolo`) }
    },
  }
  const chain = (level: number, root: string): Chain => ({
    name: `level-${level}`,
    level,
    root,
    finishOnRequiredSuccess: false,
    links: [{ name: 'm', required: true, mechanism }],
  })
  const who: Filter = {
    handle: async ({ subject: { uid, level } }) => ({ status: 200, headers: {}, body: `${uid} ${level}` }),
  }
  const url = (uri: string, level: number): Url => ({
    at: 'app.yaml:1:1',
    hosts: ['portal.test'],
    uri,
    pattern: undefined,
    chain: chain(level, `ou=${level},o=Tremolo`),
    rules: [{ scope: 'dn', constraint: 'o=Tremolo', dn: Dn.parse('o=Tremolo') }],
    filters: [who],
    errors: jsonErrors,
    takesForms,
    results: { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined },
  })
  const everybody = (uri: string): Url => ({ ...url(uri, 0), chain: undefined })
  const application = (name: string, kept: CookieConfig | undefined, urls: Url[]): Application => ({
    name,
    azTimeoutMillis: 3000,
    cookies: kept,
    urls,
  })
  const store = memorySessionStore()
  const clock = () => new Date(now)
  const pipeline = createPipeline({
    routes: new Routes([
      application('portal', { ...cookies, idleSeconds }, [
        url('/portal', 10),
        url('/portal/high', 20),
        url('/portal/open', 0),
        everybody('/portal/all'),
      ]),
      application('other', { ...cookies, name: 'o' }, [url('/other', 10), everybody('/other/all')]),
      application('twin', cookies, [url('/twin', 10)]),
      application('api', undefined, [url('/api', 10)]),
    ]),
    chains: new ChainRunner(new Map()),
    loginRoutes: new LoginRoutes([], new ChainRunner(new Map())),
    ...fakeLoginServices(clock, store),
    rules: new RuleEvaluator({ search: async () => [], isMember: async () => false }, new Map(), silentLogger),
  })
  return {
    begun,
    rows: store.rows,
    pass: (seconds: number) => {
      now += seconds * 1000
    },
    async call(path: string, headers: Record<string, string> = {}, method = 'GET') {
      const { response } = await pipeline(fakeRequest({ method, url: origin + path, headers }))
      const setCookie = String(response.headers['set-cookie'] ?? '')
      return { status: response.status, body: response.body, setCookie, cookie: setCookie.split(';')[0] ?? '' }
    },
  }
}

const bearer = { authorization: 'Bearer ada' }

describe('a session by cookie', () => {
  test('starts with authentication and then replaces it, without the chain', async () => {
    const { call, begun } = setUp()
    const { cookie } = await call('/portal', bearer)
    expect(cookie).toMatch(/^__Host-s=[\w-]{43}$/)
    expect(await call('/portal', { cookie })).toMatchObject({ status: 200, body: 'ada 10', setCookie: '' })
    expect(begun).toEqual(['ou=10,o=Tremolo'])
  })

  test('does not exist if cookies are off, and for callers of level 0', async () => {
    const { call, rows } = setUp()
    expect(await call('/api', bearer)).toMatchObject({ status: 200, setCookie: '' })
    expect(await call('/portal/open', bearer)).toMatchObject({ status: 200, setCookie: '' })
    expect(await rows()).toHaveLength(0)
  })

  test('is valid for the applications that share its cookie, and for no other', async () => {
    const { call } = setUp()
    const { cookie } = await call('/portal', bearer)
    expect((await call('/twin', { cookie })).status).toBe(200)
    expect([(await call('/other', { cookie })).status, (await call('/api', { cookie })).status]).toEqual([401, 401])
    const renamed = cookie.replace('__Host-s=', '__Host-o=')
    expect((await call('/other', { cookie: renamed })).status).toBe(401)
  })

  test('does not reach a higher level; authenticating there replaces it', async () => {
    const { call, rows } = setUp()
    const { cookie: low } = await call('/portal', bearer)
    expect((await call('/portal/high', { cookie: low })).status).toBe(401)
    const { cookie: high } = await call('/portal/high', { ...bearer, cookie: low })
    expect((await call('/portal', { cookie: low })).status).toBe(401)
    expect(await call('/portal', { cookie: high })).toMatchObject({ status: 200, body: 'ada 20' })
    expect(await rows()).toHaveLength(1)
  })

  test('expires when it is idle', async () => {
    const { call, pass } = setUp()
    const { cookie } = await call('/portal', bearer)
    pass(899)
    expect((await call('/portal', { cookie })).status).toBe(200)
    pass(899)
    expect((await call('/portal', { cookie })).status).toBe(200)
    pass(901)
    expect((await call('/portal', { cookie })).status).toBe(401)
    const short = setUp({ idleSeconds: 60 })
    const { cookie: brief } = await short.call('/portal', bearer)
    short.pass(59)
    expect((await short.call('/portal', { cookie: brief })).status).toBe(200)
    short.pass(61)
    expect((await short.call('/portal', { cookie: brief })).status).toBe(401)
  })

  test('each URL authenticates by its own chain', async () => {
    const { call, begun } = setUp()
    expect((await call('/portal', bearer)).body).toBe('ada 10')
    expect((await call('/portal/high', bearer)).body).toBe('ada 20')
    expect((await call('/portal/all', bearer)).body).toBe('Anonymous 0')
    expect(begun).toEqual(['ou=10,o=Tremolo', 'ou=20,o=Tremolo'])
  })

  test('a link of another site to the logout address asks first, and its pages may not end the session', async () => {
    const { call } = setUp()
    const { cookie } = await call('/portal', bearer)
    const foreign = { cookie, 'sec-fetch-site': 'cross-site' }
    const asked = await call('/portal/logout', { ...foreign, 'sec-fetch-mode': 'navigate' })
    expect(asked).toMatchObject({ status: 200, setCookie: '' })
    expect(String(asked.body)).toContain('<form action="/portal/logout"><button type="submit">Sign out</button></form>')
    expect(await call('/portal/logout', { ...foreign, 'sec-fetch-mode': 'no-cors' })).toMatchObject({
      status: 403,
      setCookie: '',
    })
    expect((await call('/portal', { cookie })).status).toBe(200)
    const own = { cookie, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' }
    expect((await call('/portal/logout', own)).status).toBe(303)
    expect((await call('/portal', { cookie })).status).toBe(401)
  })

  test('ends at the logout address, which also removes the cookie', async () => {
    const { call, rows } = setUp()
    const { cookie } = await call('/portal', bearer)
    expect(await call('/portal/logout', { cookie })).toMatchObject({
      status: 204,
      setCookie: expect.stringMatching(/^__Host-s=;.*Max-Age=0$/),
    })
    expect(await rows()).toHaveLength(0)
    expect((await call('/portal', { cookie })).status).toBe(401)
  })
})

describe('a change by cookie', () => {
  const json = { 'content-type': 'application/json' }
  const change = async (headers: Record<string, string>, method = 'POST') => {
    const { call } = setUp()
    const { cookie } = await call('/portal', bearer)
    return (await call('/portal', { cookie, ...headers }, method)).status
  }

  test.each<[Record<string, string>]>([
    [{}],
    [{ origin: 'null' }],
    [{ origin: 'https://evil.test' }],
    [{ origin: 'http://portal.test' }],
    [{ 'sec-fetch-site': 'cross-site' }],
    [{ 'sec-fetch-site': 'same-site', origin }],
    [{ 'sec-fetch-site': 'none' }],
    [{ 'sec-fetch-site': 'cross-site', 'x-requested-with': 'fetch' }],
    [{ origin: 'https://evil.test', 'x-requested-with': 'fetch' }],
  ])('D12: is rejected without proof that its page is of this origin: %j', async (headers) => {
    expect(await change({ ...json, ...headers })).toBe(403)
    expect(await change(headers, 'DELETE')).toBe(403)
  })

  test.each<[Record<string, string>]>([
    [{ origin }],
    [{ 'sec-fetch-site': 'same-origin' }],
    [{ 'sec-fetch-site': 'same-origin', origin }],
  ])(
    'D12: with %j is accepted as JSON, which pages of other sites cannot send, and as nothing else',
    async (headers) => {
      expect(await change({ ...json, ...headers })).toBe(200)
      expect(await change({ 'content-type': 'application/json; charset=utf-8', ...headers }, 'PUT')).toBe(200)
      expect(await change(headers)).toBe(403)
      expect(await change(headers, 'DELETE')).toBe(403)
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '']) {
        expect(await change({ ...headers, 'content-type': type }), type).toBe(415)
      }
      expect(await change({ ...headers, 'content-type': 'text/plain; application/json' })).toBe(415)
      expect(await change({ ...headers, 'content-type': 'application/jsonp' })).toBe(415)
    },
  )

  test.each<[Record<string, string>]>([
    [{ 'sec-fetch-site': 'same-origin', origin: 'null' }],
    [{ 'sec-fetch-site': 'same-origin', origin: 'https://evil.test' }],
    [{ 'sec-fetch-site': 'same-origin', origin: `${origin}:8443` }],
    [{ 'sec-fetch-site': 'same-origin', origin: '' }],
    [{ 'sec-fetch-site': 'Same-Origin' }],
    [{ origin: `${origin}:8443` }],
    [{ origin: `${origin}/` }],
    [{ origin: `${origin}.evil.test` }],
    [{ 'sec-fetch-site': '', origin }],
    [{ referer: `${origin}/portal` }],
  ])('D12: is rejected as JSON with %j, which proves nothing or contradicts itself', async (headers) => {
    expect(await change({ ...json, ...headers })).toBe(403)
    expect(await change({ ...json, ...headers }, 'PUT')).toBe(403)
  })

  test.each<[Record<string, string>]>([
    [{ origin, 'x-requested-with': 'fetch' }],
    [{ 'sec-fetch-site': 'same-origin', 'x-requested-with': 'fetch' }],
    [{ 'x-requested-with': 'fetch' }],
  ])('is accepted with %j, as JSON', async (headers) => {
    expect(await change({ ...headers, ...json })).toBe(200)
    expect(await change({ ...headers, 'content-type': 'application/scim+json; charset=utf-8' }, 'PATCH')).toBe(200)
    expect(await change(headers, 'DELETE')).toBe(200)
    expect(await change({ ...headers, 'content-type': 'text/plain' })).toBe(415)
    expect(await change({ ...headers, 'content-type': 'application/x-www-form-urlencoded' })).toBe(415)
  })

  test.each([
    ['application/x-www-form-urlencoded', 200],
    ['multipart/form-data; boundary=x', 415],
    ['text/plain', 415],
  ])('of a URL for forms may be %s: %i', async (type, status) => {
    const { call } = setUp({ takesForms: true })
    const { cookie } = await call('/portal', bearer)
    const form = { cookie, 'content-type': type }
    expect((await call('/portal', { ...form, 'sec-fetch-site': 'same-origin' }, 'POST')).status).toBe(status)
    expect((await call('/portal', { ...form, 'sec-fetch-site': 'cross-site' }, 'POST')).status).toBe(403)
  })

  test('a caller with a credential in the request needs no such proof', async () => {
    const { call } = setUp()
    expect((await call('/portal', bearer, 'POST')).status).toBe(200)
  })
})

describe('a page that names its user', () => {
  const ada = encodeURIComponent('uid=ada,o=Tremolo')

  test('is served to that user, and to no other who signed in since', async () => {
    const { call } = setUp()
    const { cookie } = await call('/portal', bearer)
    const change = { cookie, 'x-requested-with': 'portal' }
    expect((await call('/portal', { cookie, 'x-page-of': ada })).status).toBe(200)
    expect((await call('/portal', { ...change, 'x-page-of': ada }, 'POST')).status).toBe(200)
    for (const other of [encodeURIComponent('uid=grace,o=Tremolo'), '', '%', 'uid=ada,o=Tremolo', `${ada},${ada}`]) {
      const refused = await call('/portal', { cookie, 'x-page-of': other })
      expect([other, refused.status, String(refused.body)]).toEqual([
        other,
        412,
        expect.stringContaining('OTHER_PERSON'),
      ])
      expect((await call('/portal', { ...change, 'x-page-of': other }, 'POST')).status).toBe(412)
    }
  })

  test('may read, and changes nothing anonymously after the session has ended', async () => {
    const { call } = setUp()
    const { cookie } = await call('/portal', bearer)
    const change = { 'x-requested-with': 'portal', 'x-page-of': ada }
    expect(await call('/portal/all', { ...change, cookie }, 'POST')).toMatchObject({ status: 200, body: 'ada 10' })
    expect((await call('/portal/all', change, 'POST')).status).toBe(401)
    expect((await call('/portal/all', change)).status).toBe(200)
    expect(await call('/portal/all', {}, 'POST')).toMatchObject({ status: 200, body: 'Anonymous 0' })
  })

  test('may send to public URLs of an application with another cookie, while its own session lasts', async () => {
    const { call, pass } = setUp()
    const { cookie } = await call('/portal', bearer)
    const change = { cookie, 'x-requested-with': 'portal', 'x-page-of': ada }
    expect(await call('/other/all', change, 'POST')).toMatchObject({ status: 200, body: 'Anonymous 0' })
    const { cookie: another } = await call('/portal', { authorization: 'Bearer grace' })
    const refused = await call('/other/all', { ...change, cookie: another }, 'POST')
    expect([refused.status, String(refused.body)]).toEqual([412, expect.stringContaining('OTHER_PERSON')])
    const { cookie: signedInThere } = await call('/other', { authorization: 'Bearer grace' })
    const both = { ...change, cookie: `${cookie}; ${signedInThere}` }
    expect((await call('/other/all', both, 'POST')).status).toBe(412)
    expect((await call('/other/all', { ...change, cookie: `__Host-s=${'x'.repeat(43)}` }, 'POST')).status).toBe(401)
    expect((await call('/other/all', { ...change, cookie: '' }, 'POST')).status).toBe(401)
    pass(901)
    expect((await call('/other/all', change, 'POST')).status).toBe(401)
  })

  test("gets no session for a login that can't be stored", async () => {
    const { call, rows } = setUp()
    const { status, setCookie } = await call('/portal', { authorization: 'Bearer \ud800' })
    expect([status, setCookie]).toEqual([400, ''])
    expect(await rows()).toEqual([])
  })

  test('does not authenticate by the header', async () => {
    const { call } = setUp()
    expect((await call('/portal', { 'x-page-of': ada })).status).toBe(401)
    expect((await call('/api', { ...bearer, 'x-page-of': 'nobody' })).status).toBe(200)
  })
})
