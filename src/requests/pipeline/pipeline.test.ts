import { describe, expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { LoginRoutes } from '#requests/login/login-routes.ts'
import { type Chain, ChainRunner } from '#requests/routing/chain.ts'
import type { ResultActions } from '#requests/routing/routes.ts'
import { Routes, type Url } from '#requests/routing/routes.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { SessionStore } from '#requests/sessions/session-store.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { ErrorFormat } from '#sdk/http/error-format.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { fakeLoginServices } from '#testing/login/fake-login-services.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { createPipeline } from './pipeline.ts'

const upperErrors: ErrorFormat = (error) => ({
  headers: { 'content-type': 'text/x-upper' },
  body: error.publicText.toUpperCase(),
})
const everyone: Rule = { scope: 'dn', constraint: 'o=Tremolo', dn: Dn.parse('o=Tremolo') }
const nobody: Rule = { scope: 'filter', constraint: '(x=y)', filter: parseFilter('(x=y)') }
const noStore = {} as SessionStore

interface SetUp {
  readonly rules?: readonly Rule[]
  readonly outcome?: AuthOutcome | Error
  readonly filters?: readonly Filter[]
  readonly openPaths?: readonly string[]
  readonly azTimeoutMillis?: number
  readonly results?: Partial<Record<'auSuccess' | 'auFail' | 'azSuccess' | 'azFail', ResultActions>>
}

const hello: Filter = { handle: async ({ pathInfo }) => ({ status: 200, headers: {}, body: `hello ${pathInfo}` }) }

function setUp({
  rules = [everyone],
  outcome,
  filters = [hello],
  results = {},
  openPaths,
  azTimeoutMillis = 3000,
}: SetUp) {
  let now = 0
  let decisions = 0
  let handled = 0
  const mechanism: AuthMechanism = {
    begin: async () => {
      if (outcome instanceof Error) throw outcome
      return outcome ?? { kind: 'authenticated', subject: ada }
    },
  }
  const chain: Chain = {
    name: 'c',
    level: 20,
    root: 'o=Tremolo',
    finishOnRequiredSuccess: false,
    links: [{ name: 'm', required: true, mechanism }],
  }
  const counted = filters.map(
    (filter): Filter => ({
      handle: (exchange, next) => {
        handled++
        return filter.handle(exchange, next)
      },
    }),
  )
  const url: Url = {
    at: 'app.yaml:1:1',
    hosts: ['localhost'],
    uri: '/api',
    pattern: undefined,
    chain,
    rules,
    filters: counted,
    errors: upperErrors,
    takesForms: false,
    openPaths,
    results: { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined, ...results },
  }
  const directory = {
    search: async () => [],
    isMember: async () => {
      decisions++
      return true
    },
  }
  const pipeline = createPipeline({
    routes: new Routes([{ name: 'app', azTimeoutMillis, cookies: undefined, urls: [url] }]),
    chains: new ChainRunner(new Map([['c', chain]])),
    loginRoutes: new LoginRoutes([], new ChainRunner(new Map())),
    ...fakeLoginServices(() => new Date(now), noStore),
    rules: new RuleEvaluator(directory, new Map(), silentLogger),
  })
  return {
    get: (path: string, method = 'GET', host = 'localhost') =>
      pipeline(fakeRequest({ method, url: `http://${host}${path}` })),
    pass: (ms: number) => {
      now += ms
    },
    counts: () => ({ decisions, handled }),
  }
}

const ada = subject('uid=ada,o=Tremolo')

describe('the pipeline', () => {
  test('passes an allowed request to the filter, with the path below its mount', async () => {
    const { response } = await setUp({}).get('/api/Users/1')
    expect(response).toMatchObject({ status: 200, body: 'hello /Users/1' })
  })

  test('a filter can ask who the caller is by another chain, without a session and without asking a user', async () => {
    const asks: Filter = {
      handle: async (exchange) => {
        const caller = await exchange.authenticate?.('c')
        return { status: 200, headers: {}, body: `${caller?.uid} ${caller?.level} ${caller?.chain}` }
      },
    }
    const open = { openPaths: ['/open/'], filters: [asks] }
    expect((await setUp(open).get('/api/open/x')).response).toMatchObject({ status: 200, body: 'ada 20 c' })
    const rejected = { kind: 'rejected', reason: 'no token', noCredential: true } as const
    const challenge = { kind: 'challenge', response: { status: 303, headers: {} } } as const
    for (const outcome of [rejected, challenge]) {
      expect((await setUp({ ...open, outcome }).get('/api/open/x')).response.status).toBe(401)
    }
  })

  describe('below an open path', () => {
    const rejected = { kind: 'rejected', reason: 'nobody' } as const
    const app = () => setUp({ outcome: rejected, rules: [], openPaths: ['/open/'] })

    test('everyone may read, and nowhere else', async () => {
      expect((await app().get('/api/open/a.js')).response).toMatchObject({ status: 200, body: 'hello /open/a.js' })
      expect((await app().get('/api/open/a.js', 'HEAD')).response.status).toBe(200)
      for (const path of ['/api', '/api/open', '/api/Users', '/api/x/open/a.js', '/api/OPEN/a.js', '/api/opened']) {
        expect([path, (await app().get(path)).response.status]).toEqual([path, 401])
      }
      expect((await app().get('/open/a.js')).response.status).toBe(404)
    })

    test('every caller is anonymous', async () => {
      const filter: Filter = { handle: async ({ subject: { uid } }) => ({ status: 200, headers: {}, body: uid }) }
      const known = setUp({ filters: [filter], openPaths: ['/open/'] })
      expect((await known.get('/api/open/a')).response.body).toBe('Anonymous')
      expect((await known.get('/api/a')).response.body).toBe('ada')
    })

    test('nothing is changed', async () => {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect([method, (await app().get('/api/open/a.js', method)).response.status]).toEqual([method, 401])
      }
    })
  })

  test('a path without a URL is 404 in the common format', async () => {
    const { response, error } = await setUp({}).get('/other')
    expect(response.status).toBe(404)
    expect(JSON.parse(String(response.body))).toMatchObject({
      errors: ['No application is configured for this path.'],
      code: 'NOT_FOUND',
      requestId: 'request-1',
    })
    expect(error?.code).toBe('NOT_FOUND')
  })

  test('the 404 of a host without any URL names the host as the reason', async () => {
    const { response } = await setUp({}).get('/api', 'GET', '127.0.0.1')
    expect(JSON.parse(String(response.body))).toMatchObject({
      errors: ['No application is configured for this host name.'],
      code: 'NOT_FOUND',
    })
  })

  test('a rejected caller gets 401 with the headers of the mechanism, and no filter runs', async () => {
    const rejected = {
      kind: 'rejected',
      reason: 'expired',
      headers: { 'www-authenticate': 'Bearer realm="x"' },
    } as const
    const app = setUp({ outcome: rejected })
    const { response, error } = await app.get('/api')
    expect(response.status).toBe(401)
    expect(response.headers['www-authenticate']).toBe('Bearer realm="x"')
    expect(response.body).toBe('THE CREDENTIALS WERE NOT ACCEPTED.')
    expect(error?.message).toBe('expired')
    expect(app.counts().handled).toBe(0)
  })

  test('a caller without a credential gets the message that authentication is required', async () => {
    const { response, error } = await setUp({
      outcome: { kind: 'rejected', reason: 'no token', noCredential: true },
    }).get('/api')
    expect([response.status, error?.code, response.body]).toEqual([401, 'AUTH_REQUIRED', 'AUTHENTICATION IS REQUIRED.'])
  })

  test.each([[[]], [[nobody]]])('without a rule that passes it is 403, and no filter runs', async (rules) => {
    const app = setUp({ rules })
    expect((await app.get('/api')).response.status).toBe(403)
    expect(app.counts().handled).toBe(0)
  })

  test('a decision is cached for azTimeoutMillis, and no longer', async () => {
    const group: Rule = { scope: 'group', constraint: 'cn=g', group: Dn.parse('cn=g') }
    for (const azTimeoutMillis of [3000, 500]) {
      const app = setUp({ rules: [group], azTimeoutMillis })
      await app.get('/api')
      app.pass(azTimeoutMillis - 1)
      await app.get('/api')
      expect(app.counts().decisions).toBe(1)
      app.pass(1)
      await app.get('/api')
      expect(app.counts().decisions).toBe(2)
    }
  })

  test.each([
    ['7', { retryAfter: 7 }],
    ['5', {}],
  ])("a mechanism whose system is down answers 503 with a retry hint in the API's format: %s", async (hint, more) => {
    const down = new GatewayError('TARGET_UNREACHABLE', 'issuer: connection refused', more)
    const { response } = await setUp({ outcome: down }).get('/api')
    expect(response).toMatchObject({ status: 503, headers: { 'retry-after': hint, 'content-type': 'text/x-upper' } })
  })

  test('an error of a filter is reported without its details', async () => {
    const broken: Filter = { handle: () => Promise.reject(new TypeError('password=hunter2 is undefined')) }
    const { response, error } = await setUp({ filters: [broken] }).get('/api')
    expect(response).toMatchObject({ status: 500, body: 'AN INTERNAL ERROR OCCURRED.' })
    expect(error?.cause).toBeInstanceOf(TypeError)
  })

  test('filters run in order, and a request that none answers is 404', async () => {
    const marking: Filter = {
      handle: async (_exchange, next) => {
        const response = await next()
        return { ...response, headers: { ...response.headers, 'x-marked': 'yes' } }
      },
    }
    expect((await setUp({ filters: [marking, hello] }).get('/api')).response.headers['x-marked']).toBe('yes')
    expect((await setUp({ filters: [marking] }).get('/api')).response.status).toBe(404)
  })

  test('a cookie that a filter sets does not replace those of the pipeline', async () => {
    const setting: Filter = { handle: async () => ({ status: 200, headers: { 'set-cookie': 'own=1' } }) }
    const marks = [{ type: 'cookie', source: 'static', value: 'seen=yes' }] as const
    const { response } = await setUp({ filters: [setting], results: { azSuccess: marks } }).get('/api')
    expect(response.headers['set-cookie']).toEqual(['seen=yes; Path=/; HttpOnly; SameSite=Lax', 'own=1'])
  })

  test('results: a redirect replaces the refusal, headers and cookies are added to the response', async () => {
    const redirect = [{ type: 'redirect', source: 'static', value: '/denied' }] as const
    const denied = await setUp({ rules: [], results: { azFail: redirect } }).get('/api')
    expect(denied.response).toMatchObject({ status: 302, headers: { location: '/denied' } })
    const marks = [
      { type: 'header', source: 'static', value: 'X-App=one' },
      { type: 'cookie', source: 'static', value: 'seen=a b' },
      { type: 'header', source: 'user', value: 'X-Mail=mail' },
    ] as const
    const { response } = await setUp({ results: { azSuccess: marks } }).get('/api')
    expect(response.headers).toEqual({ 'x-app': 'one', 'set-cookie': 'seen=a%20b; Path=/; HttpOnly; SameSite=Lax' })
  })

  test('results of authentication: one for failures, one for successes', async () => {
    const rejected = { kind: 'rejected', reason: 'no token' } as const
    const login = [{ type: 'redirect', source: 'static', value: '/login' }] as const
    const failed = await setUp({ outcome: rejected, results: { auFail: login } }).get('/api')
    expect(failed.response).toMatchObject({ status: 302, headers: { location: '/login' } })
    const marks = [{ type: 'header', source: 'static', value: 'X-Welcome=yes' }] as const
    const app = setUp({ results: { auSuccess: marks, auFail: login } })
    const { response } = await app.get('/api')
    expect(response).toMatchObject({ status: 200, headers: { 'x-welcome': 'yes' } })
    expect(app.counts().handled).toBe(1)
  })
})
