import { describe, expect, test } from 'vitest'
import type { CookieConfig } from '#config/configuration/configuration.ts'
import { Dn } from '#identity/dn.ts'
import { silentLogger } from '#kernel/logger.ts'
import { createPipeline } from '#requests/pipeline/pipeline.ts'
import { type Chain, type ChainLink, ChainRunner } from '#requests/routing/chain.ts'
import { type Application, Routes, type Url } from '#requests/routing/routes.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { AuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { seeOther } from '#sdk/auth/login.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'
import { type GatewayResponse, header } from '#sdk/http/http.ts'
import { notice } from '#sdk/page/page.ts'
import { rowsOf } from '#testing/databases/memory-database.ts'
import { fakeLoginServices } from '#testing/login/fake-login-services.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { loginSeconds } from './login-desk.ts'
import { LoginRoutes } from './login-routes.ts'

const who = (name: string) => subject(`uid=${name},o=Tremolo`).identity

const cookies: CookieConfig = {
  name: 's',
  domain: undefined,
  secure: true,
  httpOnly: true,
  sameSite: 'Lax',
  idleSeconds: 900,
  logoutUri: '/portal/logout',
}

/** Reads a name from the query; refuses `?name=nobody`, and `?pick=chain` hands over. */
const asks: AuthMechanism = {
  begin: async ({ login }) =>
    login === undefined
      ? { kind: 'rejected', reason: 'no browser', noCredential: true }
      : { kind: 'challenge', response: seeOther(login.address), state: { tries: 0 } },
  async proceed({ request, state, login, sessionId }) {
    const name = request.query.get('name')
    if (name === null) return { kind: 'challenge', response: notice(200, 'Who?', `${login.id} ${state['tries']}`) }
    if (name === 'again') {
      const tries = Number(state['tries']) + 1
      return { kind: 'challenge', response: notice(401, 'Who?', `try ${tries}`), state: { tries } }
    }
    if (name === 'nobody') return { kind: 'rejected', reason: 'nobody' }
    const session = { slots: { asks: { for: sessionId } }, marks: [`name ${name}`] }
    return { kind: 'authenticated', subject: subject(`uid=${name},o=Tremolo`), session }
  },
  serve: async (_request, pathInfo) =>
    pathInfo === '/script.js' ? { status: 200, headers: {}, body: 'script' } : undefined,
}

const second: AuthMechanism = {
  begin: async ({ login, subject: found }) =>
    found === undefined || login === undefined
      ? { kind: 'rejected', reason: 'nobody yet' }
      : { kind: 'challenge', response: seeOther(login.address) },
  async proceed({ request, subject: found }) {
    if (request.query.get('code') === '123') return { kind: 'passed' }
    if (request.query.get('code') === 'no') return { kind: 'rejected', reason: `bad code of ${found?.uid}` }
    return { kind: 'challenge', response: notice(200, 'Code?', found?.uid ?? '') }
  },
  afterLogout: async ({ id }) => `https://issuer.test/logout?hint=${id}`,
}

const link = (name: string, mechanism: AuthMechanism, more: Partial<ChainLink> = {}): ChainLink => ({
  name,
  required: true,
  mechanism,
  uri: `/auth/${name}`,
  interactive: true,
  ...more,
})

const chain = (name: string, level: number, links: readonly ChainLink[]): Chain => ({
  name,
  level,
  root: 'o=Tremolo',
  finishOnRequiredSuccess: false,
  links,
})

const chooses: AuthMechanism = {
  begin: async () => ({ kind: 'include', chain: 'two' }),
}
const backdoor: AuthMechanism = { begin: async () => ({ kind: 'passed' }) }

/** Checks a password in a header, for programs. */
const passwordHeader: AuthMechanism = {
  async begin({ request, guard }) {
    const turn = await guard?.begin('ada')
    if (turn?.allowed !== true) return { kind: 'rejected', reason: 'locked', status: 403 }
    if (header(request, 'x-password') === 'right') {
      await turn.succeeded()
      return { kind: 'authenticated', subject: subject('uid=ada,o=Tremolo') }
    }
    await turn.failed('wrong password')
    return { kind: 'rejected', reason: 'wrong password' }
  },
}

function standardChains(): Chain[] {
  return [
    chain('api', 10, [link('header', passwordHeader, { interactive: false })]),
    chain('one', 10, [link('ask', asks)]),
    chain('two', 20, [link('ask', asks), link('code', second)]),
    chain('including', 15, [
      link('choose', chooses, { interactive: false, includes: ['two'], required: false }),
      link('back', backdoor, { interactive: false, required: false }),
    ]),
  ]
}

interface Browser {
  get(path: string, headers?: Record<string, string>, method?: string): Promise<GatewayResponse>
  readonly jar: Map<string, string>
}

function setUp({ strict = false, chains = standardChains() } = {}) {
  let now = Date.UTC(2030, 0, 1)
  const clock = () => new Date(now)
  const services = fakeLoginServices(clock)
  const runner = new ChainRunner(new Map(chains.map((one) => [one.name, one])))
  const seen: (string | undefined)[] = []
  const who: Filter = {
    async handle({ subject: { uid, level }, session, requireLogin, request }) {
      seen.push(JSON.stringify(await session?.read('asks')))
      const higher = request.query.get('require')
      const maxAge = request.query.get('maxAge')
      const answer =
        higher === null
          ? undefined
          : await requireLogin?.(higher, maxAge === null ? {} : { maxAgeSeconds: Number(maxAge) })
      return answer ?? { status: 200, headers: {}, body: `${uid} ${level}` }
    },
  }
  const url = (uri: string, name: string | undefined): Url => ({
    at: 'app.yaml:1:1',
    hosts: ['portal.test', 'other.test'],
    uri,
    pattern: undefined,
    chain: name === undefined ? undefined : runner.get(name),
    rules: [{ scope: 'dn', constraint: 'o=Tremolo', dn: Dn.parse('o=Tremolo') }],
    filters: [who],
    errors: jsonErrors,
    takesForms: false,
    results: { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined },
  })
  const kept: CookieConfig = strict ? { ...cookies, sameSite: 'Strict' } : cookies
  const applications: Application[] = [
    {
      name: 'portal',
      azTimeoutMillis: 0,
      cookies: kept,
      urls: [
        url('/portal', 'one'),
        url('/high', 'two'),
        url('/including', 'including'),
        url('/api', 'api'),
        url('/', 'one'),
      ],
    },
  ]
  const open = (using: ChainRunner) =>
    createPipeline({
      ...services,
      routes: new Routes(applications),
      loginRoutes: new LoginRoutes(applications, using),
      chains: using,
      rules: new RuleEvaluator({ search: async () => [], isMember: async () => false }, new Map(), silentLogger),
    })
  let pipeline = open(runner)
  const browser = (host = 'portal.test', jar = new Map<string, string>(), remoteAddress = '127.0.0.1'): Browser => ({
    jar,
    async get(path, headers = { 'sec-fetch-mode': 'navigate' }, method = 'GET') {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
      const request = fakeRequest({
        method,
        url: `https://${host}${path}`,
        headers: { ...headers, ...(cookie === '' ? {} : { cookie }) },
      })
      const { response } = await pipeline({ ...request, remoteAddress })
      for (const line of [response.headers['set-cookie'] ?? []].flat()) {
        const [pair = ''] = line.split(';')
        const [name = '', value = ''] = pair.split('=')
        if (/Max-Age=0/.test(line)) jar.delete(name)
        else jar.set(name, value)
      }
      return response
    },
  })
  return {
    ...services,
    seen,
    browser,
    pass: (seconds: number) => {
      now += seconds * 1000
    },
    restart: (other = chains) => {
      pipeline = open(new ChainRunner(new Map(other.map((one) => [one.name, one]))))
    },
  }
}

const location = (response: GatewayResponse): string => String(response.headers['location'] ?? '')
const body = (response: GatewayResponse): string => String(response.body ?? '')

async function logIn(browser: Browser, path = '/portal', name = 'ada'): Promise<GatewayResponse> {
  const login = location(await browser.get(path))
  return browser.get(`${login}&name=${name}`)
}

describe('a login', () => {
  test('leads from the requested page to the mechanism, and back', async () => {
    const { browser, audited, counted, seen } = setUp()
    const here = browser()
    const first = await here.get('/portal/deep?x=1&y=a%20b')
    expect(first.status).toBe(303)
    expect(location(first)).toMatch(/^\/auth\/ask\?login=[\w-]{43}$/)
    expect(first.headers['set-cookie']).toMatch(
      /^__Host-gatehouse-login=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
    )
    expect(body(await here.get(location(first)))).toContain(' 0')
    const done = await here.get(`${location(first)}&name=ada`)
    expect([done.status, location(done)]).toEqual([303, '/portal/deep?x=1&y=a+b'])
    expect(body(await here.get('/portal/deep'))).toBe('ada 10')
    expect(audited).toMatchObject([{ kind: 'session', action: 'issue', subject: 'ada', target: 'portal' }])
    expect(counted).toEqual(['one begun', 'one signed-in'])
    expect(seen.at(-1)).toBe(JSON.stringify({ for: audited[0]?.workflow.id }))
  })

  test('is offered to navigations only; other requests get a 401 and nothing is stored', async () => {
    const { browser, database } = setUp()
    for (const headers of [
      {},
      { accept: 'application/json' },
      { 'sec-fetch-mode': 'cors', accept: 'text/html' },
      { 'sec-fetch-mode': 'no-cors' },
    ]) {
      const answer = await browser().get('/portal', headers)
      expect([answer.status, body(answer)]).toEqual([401, expect.stringContaining('AUTH_REQUIRED')])
    }
    expect((await browser().get('/portal', { 'sec-fetch-mode': 'navigate' }, 'POST')).status).toBe(401)
    expect(await rowsOf(database, 'logins')).toEqual([])
    expect((await browser().get('/portal', { accept: 'text/html,application/xhtml+xml' })).status).toBe(303)
  })

  test('is stored encrypted, so that the database alone does not reveal it', async () => {
    const { browser, database } = setUp()
    await browser().get('/portal?private=very-secret-value')
    const [row] = await rowsOf(database, 'logins')
    expect(JSON.stringify(row)).not.toContain('very-secret-value')
    expect(row?.['data']).toMatch(/^g1\./)
  })

  test('continues after a restart, since the process has no state of it', async () => {
    const { browser, restart } = setUp()
    const here = browser()
    const login = location(await here.get('/high'))
    restart()
    const next = await here.get(`${login}&name=ada`)
    expect(location(next)).toMatch(/^\/auth\/code\?login=/)
    restart()
    expect((await here.get(`${location(next)}&code=123`)).status).toBe(303)
    expect(body(await here.get('/high'))).toBe('ada 20')
  })

  test('begins again if the configuration has another mechanism in its place', async () => {
    const { browser, restart } = setUp()
    const here = browser()
    const login = location(await here.get('/high'))
    const changed = standardChains().map((one) =>
      one.name === 'two' ? chain('two', 20, [link('code', second), link('ask', asks)]) : one,
    )
    restart(changed)
    expect((await here.get(`${login}&name=ada`)).status).toBe(400)
    expect(here.jar.has('__Host-s')).toBe(false)
  })

  test('in several tabs: each returns to its own page', async () => {
    const { browser } = setUp()
    const here = browser()
    const one = location(await here.get('/portal/one'))
    const two = location(await here.get('/portal/two'))
    expect(location(await here.get(`${one}&name=ada`))).toBe('/portal/one')
    expect(location(await here.get(`${two}&name=ada`))).toBe('/portal/two')
    expect(body(await here.get('/portal'))).toBe('ada 10')
  })

  test('expires after ten minutes', async () => {
    const { browser, pass } = setUp()
    const here = browser()
    const login = location(await here.get('/portal'))
    pass(loginSeconds - 1)
    expect((await here.get(login)).status).toBe(200)
    pass(1)
    expect((await here.get(`${login}&name=ada`)).status).toBe(400)
  })

  test('keeps the state of its mechanism from step to step', async () => {
    const { browser } = setUp()
    const here = browser()
    const login = location(await here.get('/portal'))
    expect(body(await here.get(`${login}&name=again`))).toContain('try 1')
    expect(body(await here.get(`${login}&name=again`))).toContain('try 2')
    expect(body(await here.get(login))).toContain(' 2')
  })

  test('that is refused ends, is audited, and can be tried again', async () => {
    const { browser, audited, counted } = setUp()
    const here = browser()
    const login = location(await here.get('/portal?x=1'))
    const refused = await here.get(`${login}&name=nobody`)
    expect([refused.status, body(refused)]).toEqual([401, expect.stringContaining('href="/portal?x=1"')])
    expect((await here.get(`${login}&name=ada`)).status).toBe(400)
    expect(audited).toMatchObject([{ kind: 'session', action: 'refuse', subject: 'unknown' }])
    expect(counted).toEqual(['one begun', 'one refused'])
    expect(here.jar.has('__Host-s')).toBe(false)
  })

  test('that is refused after a password is audited by the name that the password proved', async () => {
    const refuses: AuthMechanism = {
      begin: async () => ({ kind: 'rejected', reason: 'no second factor', status: 403 }),
    }
    const chains = [chain('one', 10, [link('ask', asks), link('no', refuses, { interactive: false })])]
    const { browser, audited } = setUp({ chains })
    const here = browser()
    const login = location(await here.get('/portal'))
    expect((await here.get(`${login}&name=ada`)).status).toBe(403)
    expect(audited).toMatchObject([{ kind: 'session', action: 'refuse', subject: 'ada' }])
  })

  test('a chain of two mechanisms asks twice, and one alone is not enough', async () => {
    const { browser } = setUp()
    const here = browser()
    const login = location(await here.get('/high'))
    const code = location(await here.get(`${login}&name=ada`))
    expect(here.jar.has('__Host-s')).toBe(false)
    expect((await here.get('/portal')).status).toBe(303)
    const refused = await here.get(`${code}&code=no`)
    expect(refused.status).toBe(401)
    expect(here.jar.has('__Host-s')).toBe(false)
  })

  test('an included chain that fails in the middle establishes no user, even for an optional link', async () => {
    const { browser } = setUp()
    const here = browser()
    const login = location(await here.get('/including'))
    const code = location(await here.get(`${login}&name=ada`))
    expect((await here.get(`${code}&code=no`)).status).toBe(401)
    expect(here.jar.has('__Host-s')).toBe(false)
    const again = location(await here.get(`${location(await here.get('/including'))}&name=ada`))
    expect(location(await here.get(`${again}&code=123`))).toBe('/including')
    expect(body(await here.get('/including'))).toBe('ada 15')
  })

  test('a password in a request is guarded like one in a form', async () => {
    const { browser, pass } = setUp()
    const send = async (password: string) => (await browser().get('/api', { 'x-password': password })).status
    expect(await send('right')).toBe(200)
    for (let i = 0; i < 5; i++) expect(await send('wrong')).toBe(401)
    expect([await send('wrong'), await send('right')]).toEqual([403, 403])
    pass(3600)
    expect(await send('right')).toBe(200)
  })

  test('requests without a login reach the mechanism by another method', async () => {
    const { browser } = setUp()
    expect(body(await browser().get('/auth/ask/script.js'))).toBe('script')
    expect((await browser().get('/auth/ask')).status).toBe(400)
    expect((await browser().get('/auth/unknown')).status).toBe(303)
  })
})

describe('a hostile login', () => {
  test('session fixation: a login does not use a planted cookie', async () => {
    const { browser } = setUp()
    const planted = 'a'.repeat(43)
    const here = browser('portal.test', new Map([['__Host-s', planted]]))
    await logIn(here)
    expect(here.jar.get('__Host-s')).not.toBe(planted)
    expect((await browser('portal.test', new Map([['__Host-s', planted]])).get('/portal')).status).toBe(303)
  })

  test('a planted login cookie is not accepted', async () => {
    const { browser } = setUp()
    const planted = 'b'.repeat(43)
    const here = browser('portal.test', new Map([['__Host-gatehouse-login', planted]]))
    await here.get('/portal')
    expect(here.jar.get('__Host-gatehouse-login')).not.toBe(planted)
  })

  test('replayed state: a completed login is not completed again', async () => {
    const { browser, sessions } = setUp()
    const here = browser()
    const login = location(await here.get('/portal'))
    expect((await here.get(`${login}&name=ada`)).status).toBe(303)
    expect((await here.get(`${login}&name=grace`)).status).toBe(400)
    expect(await sessions.ofOwner(who('grace'))).toEqual([])
  })

  test('replayed step: a completed step is not repeated', async () => {
    const { browser } = setUp()
    const here = browser()
    const login = location(await here.get('/high'))
    const code = location(await here.get(`${login}&name=ada`))
    expect((await here.get(`${login}&name=grace`)).status).toBe(409)
    await here.get(`${code}&code=123`)
    expect(body(await here.get('/high'))).toBe('ada 20')
  })

  test('of two concurrent requests for the same step, one succeeds', async () => {
    const { browser, sessions } = setUp()
    const here = browser()
    const login = location(await here.get('/portal'))
    const answers = await Promise.all(['ada', 'grace', 'alan'].map((name) => here.get(`${login}&name=${name}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 409, 409])
    const started = await Promise.all(['ada', 'grace', 'alan'].map((name) => sessions.ofOwner(who(name))))
    expect(started.flat()).toHaveLength(1)
  })

  test('of another browser, or at another host, is unknown', async () => {
    const { browser } = setUp()
    const here = browser()
    const login = location(await here.get('/portal'))
    expect((await browser().get(`${login}&name=ada`)).status).toBe(400)
    const elsewhere = browser()
    await elsewhere.get('/portal')
    expect((await elsewhere.get(`${login}&name=ada`)).status).toBe(400)
    expect((await browser('other.test', here.jar).get(`${login}&name=ada`)).status).toBe(400)
    expect((await here.get(`${login}&name=ada`)).status).toBe(303)
  })

  test.each(['', 'x', '../..', 'a'.repeat(43), `${'a'.repeat(43)}'--`, '%00'])('a made-up login %j', async (id) => {
    const { browser } = setUp()
    const here = browser()
    await here.get('/portal')
    expect((await here.get(`/auth/ask?login=${id}&name=ada`)).status).toBe(400)
  })

  test('D19: no parameter says where a login leads, and no path leads to another host', async () => {
    const { browser } = setUp()
    for (const path of [
      '/portal?target=https://evil.test/&returnTo=https://evil.test/&redirect_uri=//evil.test',
      '//evil.test/portal',
      '///evil.test',
      '/%5Cevil.test',
    ]) {
      const here = browser()
      const login = location(await here.get(path))
      const to = location(await here.get(`${login}&name=ada&target=https://evil.test/`))
      expect(new URL(to, 'https://portal.test').origin).toBe('https://portal.test')
      expect(to.startsWith('//')).toBe(false)
    }
  })

  test("header injection: the requested path can't break out of the Location", async () => {
    const { browser } = setUp()
    const done = await logIn(browser(), '/portal/a%0d%0aset-cookie:x=1?q=%0d%0aset-cookie:y=2')
    expect(location(done)).not.toMatch(/[\r\n]/)
    expect(location(done)).toMatch(/^\/portal\//)
  })

  test('a form of another site is rejected before anything reads it', async () => {
    const { browser } = setUp()
    const here = browser()
    const login = location(await here.get('/portal'))
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.test' },
      { origin: 'null' },
    ]) {
      expect((await here.get(`${login}&name=ada`, headers, 'POST')).status).toBe(403)
    }
    const own = { 'sec-fetch-site': 'same-origin', origin: 'https://portal.test' }
    expect((await here.get(`${login}&name=ada`, own, 'POST')).status).toBe(303)
  })

  test('too many logins started from one address have to wait', async () => {
    const { browser, pass } = setUp()
    const here = browser()
    for (let i = 0; i < 120; i++) expect((await here.get('/portal')).status).toBe(303)
    const refused = await here.get('/portal')
    expect([refused.status, Number(refused.headers['retry-after'])]).toEqual([429, 1])
    pass(1)
    expect((await here.get('/portal')).status).toBe(303)
  })

  test('a whole network of IPv6 addresses counts as one address', async () => {
    const { browser } = setUp()
    const from = (i: number) => browser('portal.test', new Map(), `2001:db8:0:1::${i.toString(16)}`)
    for (let i = 0; i < 120; i++) expect((await from(i).get('/portal')).status).toBe(303)
    expect((await from(120).get('/portal')).status).toBe(429)
    expect((await browser('portal.test', new Map(), '2001:db8:0:2::1').get('/portal')).status).toBe(303)
  })

  test.each(['a'.repeat(43), 'x', ''])('a manipulated cookie, such as %j, is not a session', async (value) => {
    const { browser } = setUp()
    const here = browser()
    await logIn(here)
    here.jar.set('__Host-s', value)
    expect((await here.get('/portal')).status).toBe(303)
  })
})

describe('a step-up', () => {
  test('gives the same session a new secret and a higher level, and keeps its content', async () => {
    const { browser, sessions, seen } = setUp()
    const here = browser()
    await logIn(here)
    const before = here.jar.get('__Host-s') ?? ''
    const [low] = await sessions.ofOwner(who('ada'))
    const code = location(await logIn(here, '/high'))
    await here.get(`${code}&code=123`)
    expect(here.jar.get('__Host-s')).not.toBe(before)
    const [high, ...others] = await sessions.ofOwner(who('ada'))
    expect(others).toEqual([])
    expect([high?.id, high?.level]).toEqual([low?.id, 20])
    expect(body(await here.get('/high'))).toBe('ada 20')
    expect(seen.at(-1)).toBe(JSON.stringify({ for: low?.id }))
    expect((await browser('portal.test', new Map([['__Host-s', before]])).get('/portal')).status).toBe(303)
  })

  test('by another user ends the session, and begins again', async () => {
    const { browser, sessions } = setUp()
    const here = browser()
    await logIn(here)
    const code = location(await logIn(here, '/high', 'grace'))
    expect(location(await here.get(`${code}&code=123`))).toBe('/high')
    expect([...(await sessions.ofOwner(who('ada'))), ...(await sessions.ofOwner(who('grace')))]).toEqual([])
    expect((await here.get('/high')).status).toBe(303)
  })

  test('of a session that has ended does not restore it', async () => {
    const { browser, sessions } = setUp()
    const here = browser()
    await logIn(here)
    const code = location(await logIn(here, '/high'))
    await sessions.endAll(who('ada'), undefined)
    expect(location(await here.get(`${code}&code=123`))).toBe('/high')
    expect(await sessions.ofOwner(who('ada'))).toEqual([])
  })

  test('can be requested by a filter, also because the login is too old', async () => {
    const { browser, pass } = setUp()
    const here = browser()
    await logIn(here)
    const step = await here.get('/portal?require=two')
    expect(location(step)).toMatch(/^\/auth\/ask/)
    const code = location(await here.get(`${location(step)}&name=ada`))
    expect(location(await here.get(`${code}&code=123`))).toBe('/portal?require=two')
    expect(body(await here.get('/portal?require=two'))).toBe('ada 20')
    pass(100)
    expect(body(await here.get('/portal?require=one&maxAge=100'))).toBe('ada 20')
    pass(1)
    expect((await here.get('/portal?require=one&maxAge=100')).status).toBe(303)
    expect((await here.get('/portal?require=one&maxAge=100', {})).status).toBe(401)
  })
})

describe('a logout', () => {
  test('ends the session, clears the cookie and redirects to a fixed page, or to that of the mechanism', async () => {
    const { browser, sessions, audited } = setUp()
    const here = browser()
    await logIn(here)
    const secret = here.jar.get('__Host-s') ?? ''
    const out = await here.get('/portal/logout?target=https://evil.test/')
    expect([out.status, location(out)]).toEqual([303, '/auth/signed-out'])
    expect(here.jar.has('__Host-s')).toBe(false)
    expect(await sessions.ofOwner(who('ada'))).toEqual([])
    expect((await browser('portal.test', new Map([['__Host-s', secret]])).get('/portal')).status).toBe(303)
    expect(audited.at(-1)).toMatchObject({ kind: 'session', action: 'delete', subject: 'ada' })
    const page = await here.get('/auth/signed-out')
    expect([page.status, header({ headers: page.headers }, 'content-security-policy')]).toEqual([
      200,
      expect.stringContaining("default-src 'none'"),
    ])
    expect(body(page)).toContain('<a href="/portal">Sign in again</a>')
    const linked = async (referer: string) =>
      /<a href="([^"]*)"/.exec(body(await here.get('/auth/signed-out', { referer })))?.[1]
    expect(await linked('https://portal.test/high/deep?code=secret#x')).toBe('/high/deep')
    const unsafe = [
      'https://evil.test/high',
      'http://portal.test/high',
      'https://portal.test//evil.test',
      'javascript:1',
    ]
    const ours = ['https://portal.test/auth/ask?login=x', 'https://portal.test/portal/logout', 'no address', '']
    for (const referer of [...unsafe, ...ours]) expect([referer, await linked(referer)]).toEqual([referer, '/portal'])
    expect(await linked('https://portal.test/high/"><script>')).toBe('/high/%22%3E%3Cscript%3E')
    expect(body(await browser('nowhere.test').get('/auth/signed-out'))).not.toContain('href')
    const cli = await here.get('/auth/forms/cli-login-finished.jsp')
    expect([cli.status, body(cli).includes('Continue in the terminal')]).toEqual([200, true])
    const code = location(await logIn(here, '/high'))
    await here.get(`${code}&code=123`)
    expect(location(await here.get('/portal/logout'))).toMatch(/^https:\/\/issuer\.test\/logout\?hint=/)
  })

  test('by a script is a 204; a prefetched page logs no one out', async () => {
    const { browser, sessions } = setUp()
    const here = browser()
    await logIn(here)
    await here.get('/portal/logout', { 'sec-purpose': 'prefetch;prerender', 'sec-fetch-mode': 'navigate' })
    expect(await sessions.ofOwner(who('ada'))).toHaveLength(1)
    expect((await here.get('/portal/logout', {})).status).toBe(204)
    expect(await sessions.ofOwner(who('ada'))).toEqual([])
  })
})

test('a strict session cookie survives a redirect that another site began', async () => {
  const { browser } = setUp({ strict: true })
  const here = browser()
  const login = location(await here.get('/portal?x="><script>'))
  const done = await here.get(`${login}&name=ada`, { 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'cross-site' })
  expect(done.status).toBe(200)
  expect(body(done)).toContain('<meta http-equiv="refresh" content="0; url=/portal?x=%22%3E%3Cscript%3E">')
})
