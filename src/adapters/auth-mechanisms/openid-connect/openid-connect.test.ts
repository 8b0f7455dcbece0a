import { createHash } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { SessionHandle } from '#sdk/auth/session.ts'
import { FakeIssuer, rsaKey, sendJson, signedToken } from '#testing/login/fake-issuer.ts'
import { challengeOf, type FakeLogin, fakeLogin } from '#testing/login/fake-login-attempt.ts'
import { noSessions } from '#testing/login/no-sessions.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import openIdConnect from './openid-connect.ts'
import { parseOpenIdConnect } from './parameters.ts'

const [key, foreign] = [rsaKey('k1'), rsaKey('k1')]
const id = 'L'.repeat(43)

let issuer: FakeIssuer
/** The token endpoint's answer, and the request that it received. */
let tokens: { claims: JWTPayload; signer: typeof key; status: number; body?: object }
let redeemed: URLSearchParams[]
let ended: string[]
let mechanisms: AuthMechanism[]

beforeEach(async () => {
  issuer = await FakeIssuer.start([key])
  tokens = { claims: {}, signer: key, status: 200 }
  redeemed = []
  ended = []
  mechanisms = []
  const { url } = issuer
  issuer.overrides.set('/issuer/.well-known/openid-configuration', (_request, response) =>
    sendJson(response, {
      issuer: url,
      jwks_uri: `${url}/certs`,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      userinfo_endpoint: `${url}/me`,
      end_session_endpoint: `${url}/end`,
      code_challenge_methods_supported: ['S256'],
    }),
  )
  issuer.overrides.set('/issuer/token', async (request, response) => {
    redeemed.push(new URLSearchParams(await text(request)))
    const { claims, signer, status, body } = tokens
    const idToken = await signedToken(signer, claims)
    sendJson(response, body ?? { access_token: 'at-1', token_type: 'bearer', id_token: idToken }, status)
  })
  issuer.overrides.set('/issuer/me', (_request, response) =>
    sendJson(response, { sub: 'ada', email: 'ada@corp.test', team: 'engines' }),
  )
})
afterEach(async () => {
  for (const one of mechanisms) await one.close?.()
  await issuer.close()
})

const basic = (): ParamValues => ({
  issuer: issuer.url,
  clientid: 'gate',
  secretid: 's3cret',
  noMatchOU: 'outside',
  uidAttr: 'sub',
})

async function mechanism(params: ParamValues = {}, entries: readonly InsertEntry[] = []): Promise<AuthMechanism> {
  const issues = noIssues()
  const prepared = openIdConnect.prepare(
    fakeParams({ ...basic(), ...params }),
    fakeParams({}),
    issues,
    fakeParseContext(),
  )
  expect(issueTexts(issues.list)).toEqual([])
  const sessions = { ...noSessions, endMarked: async (mark: string) => ended.push(mark) }
  const made = await prepared.create(fakeModuleHost({ entries, sessions }))
  mechanisms.push(made)
  return made
}

const seconds = (): number => Math.floor(Date.now() / 1000)

/** Starts a login, up to the issuer, which answers honestly unless a test changes it. */
async function depart(
  params: ParamValues = {},
  entries: readonly InsertEntry[] = [],
): Promise<FakeLogin & { asked: URL }> {
  const login = fakeLogin(await mechanism(params, entries), { uri: '/auth/oidc' })
  const asked = new URL(challengeOf(await login.begin()).location)
  tokens.claims = {
    iss: issuer.url,
    aud: 'gate',
    sub: 'ada',
    nonce: asked.searchParams.get('nonce') ?? '',
    iat: seconds(),
    exp: seconds() + 300,
    auth_time: seconds(),
  }
  return Object.assign(login, { asked })
}

const back = (login: FakeLogin, query: Readonly<Record<string, string>> = {}): Promise<AuthOutcome> =>
  login.proceed({ url: `https://portal.test/auth/oidc?${new URLSearchParams({ code: 'c-1', state: id, ...query })}` })

const subjectOf = (outcome: AuthOutcome) => {
  if (outcome.kind !== 'authenticated') throw new Error(`not authenticated: ${JSON.stringify(outcome)}`)
  return outcome.subject
}

const person = (dn: string, attributes: Record<string, string[]>): InsertEntry => ({
  dn: Dn.parse(dn),
  attributes: Attributes.from(attributes),
})

describe('a login', () => {
  test('redirects to the issuer with state, nonce and PKCE, and redeems the code that comes back', async () => {
    const login = await depart({ hd: 'corp.test' })
    const { searchParams: asked, origin, pathname } = login.asked
    expect(`${origin}${pathname}`).toBe(`${issuer.url}/authorize`)
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: 'code',
      client_id: 'gate',
      scope: 'openid email profile',
      redirect_uri: 'https://portal.test/auth/oidc',
      state: id,
      code_challenge_method: 'S256',
      max_age: '0',
      hd: 'corp.test',
    })
    tokens.claims = { ...tokens.claims, hd: 'Corp.test', groups: ['a', 'b'], sid: 'sid-1' }
    const outcome = await back(login)
    const { dn, uid, attributes } = subjectOf(outcome)
    expect([dn.toString(), uid]).toEqual(['sub=ada,ou=outside,o=Tremolo', 'ada'])
    expect(attributes.values('groups')).toEqual(['a', 'b'])
    expect(attributes.has('nonce')).toBe(false)
    const [sent] = redeemed
    expect(sent?.get('code')).toBe('c-1')
    expect(sent?.get('redirect_uri')).toBe('https://portal.test/auth/oidc')
    const challenge = createHash('sha256')
      .update(sent?.get('code_verifier') ?? '')
      .digest('base64url')
    expect(challenge).toBe(asked.get('code_challenge'))
    expect(outcome).toMatchObject({
      session: { marks: [expect.stringContaining('"sub","ada"'), expect.stringContaining('"sid","sid-1"')] },
    })
  })

  test('has a new nonce and verifier each time', async () => {
    const login = await depart()
    const first = login.state
    expect(challengeOf(await login.proceed()).location).toContain(`${issuer.url}/authorize`)
    expect(login.state['nonce']).not.toBe(first['nonce'])
    expect(login.state['verifier']).not.toBe(first['verifier'])
  })

  test('stores the tokens in the session if a name is configured, and nowhere else', async () => {
    const kept = await back(await depart({ bearerTokenName: 'tok' }))
    expect(kept).toMatchObject({ session: { slots: { tok: 'at-1', 'tok-id': expect.stringMatching(/^ey/) } } })
    const none = await back(await depart())
    expect(JSON.stringify(none)).not.toContain('at-1')
  })

  test('also reads claims from the userinfo endpoint if configured; the id_token wins', async () => {
    const className = 'com.tremolosecurity.unison.proxy.auth.openidconnect.loadUser.LoadAttributesFromWS'
    const login = await depart({ userLookupClassName: className, uidAttr: 'email' })
    tokens.claims = { ...tokens.claims, team: 'analysts' }
    const { attributes, uid } = subjectOf(await back(login))
    expect([uid, attributes.first('team')]).toEqual(['ada@corp.test', 'analysts'])
    issuer.overrides.set('/issuer/me', (_request, response) => sendJson(response, { sub: 'eve', email: 'e@corp.test' }))
    expect((await back(await depart({ userLookupClassName: 'userinfo' }))).kind).toBe('rejected')
  })

  test('sends a hint of the user that an earlier mechanism established', async () => {
    const on = await mechanism({ loginHintEnabled: 'true', loginHintAttribute: 'mail' })
    const known = subject('uid=ada,o=Tremolo', { mail: ['ada@corp.test&prompt=none'] })
    const asked = new URL(challengeOf(await fakeLogin(on, { subject: known }).begin()).location)
    expect(asked.searchParams.get('login_hint')).toBe('ada@corp.test&prompt=none')
    expect(asked.searchParams.has('prompt')).toBe(false)
  })

  test('is for browsers', async () => {
    const attempt = { request: fakeRequest({}), subject: undefined, root: 'o=Tremolo' }
    expect(await (await mechanism()).begin(attempt)).toMatchObject({ kind: 'rejected', noCredential: true })
  })
})

describe('rejects an answer', () => {
  test.each<[string, Record<string, string>]>([
    ['with another state', { state: 'M'.repeat(43) }],
    ['without a code', { code: '' }],
    ['that says no', { error: 'access_denied' }],
    ['of another issuer', { iss: 'https://evil.test' }],
  ])('%s', async (_case, query) => {
    const outcome = await back(await depart(), query)
    expect(outcome.kind).toBe('rejected')
    if (!('code' in query)) expect(redeemed).toEqual([])
  })

  test.each<[string, () => void]>([
    ['of another nonce', () => (tokens.claims = { ...tokens.claims, nonce: 'replayed' })],
    ['without a nonce', () => delete tokens.claims['nonce']],
    ['for another client', () => (tokens.claims = { ...tokens.claims, aud: 'other' })],
    ['by another issuer', () => (tokens.claims = { ...tokens.claims, iss: 'https://evil.test' })],
    ['that has expired', () => (tokens.claims = { ...tokens.claims, exp: seconds() - 120 })],
    ['that another key signed', () => (tokens.signer = foreign)],
    ['of a login long ago', () => (tokens.claims = { ...tokens.claims, auth_time: seconds() - 3600 })],
    ['whose sub is not a text', () => (tokens.claims = { ...tokens.claims, sub: ['ada'] as unknown as string })],
    ['with two claims that differ in letter case', () => (tokens.claims = { ...tokens.claims, SUB: 'root' })],
  ])('with an id_token %s', async (_case, spoil) => {
    const login = await depart()
    spoil()
    expect((await back(login)).kind).toBe('rejected')
  })

  test('without an id_token, or with one that is not signed', async () => {
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.`
    for (const more of [{}, { id_token: `${unsigned}${Buffer.from('{}').toString('base64url')}.` }]) {
      const login = await depart()
      tokens.body = { access_token: 'at-1', token_type: 'bearer', ...more }
      expect((await back(login)).kind).toBe('rejected')
    }
  })

  test('of a code that the issuer does not know', async () => {
    const login = await depart()
    tokens = { ...tokens, status: 400, body: { error: 'invalid_grant' } }
    expect(await back(login)).toMatchObject({ kind: 'rejected', reason: 'the issuer says invalid_grant' })
  })

  test('of another hosted domain, or of none', async () => {
    for (const hd of [{ hd: 'evil.test' }, {}, { hd: 'corp.test.evil.test' }]) {
      const login = await depart({ hd: 'corp.test' })
      tokens.claims = { ...tokens.claims, ...hd }
      expect((await back(login)).kind).toBe('rejected')
    }
  })

  test('unless the issuer does not answer: that is 503', async () => {
    const login = await depart()
    tokens = { ...tokens, status: 500, body: {} }
    await expect(back(login)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    const away = await mechanism({ issuer: `${issuer.url}/nothing-here` })
    await expect(fakeLogin(away).begin()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  })
})

describe('looks up users', () => {
  const linked = { linkToDirectory: 'true', lookupFilter: '(&(uid=${sub})(objectClass=person))' }
  const ada = person('uid=ada,ou=people,o=Tremolo', { uid: ['ada'], objectClass: ['person'] })
  const root = person('uid=root,ou=people,o=Tremolo', { uid: ['root'], objectClass: ['person'] })

  test('by the filter', async () => {
    const { dn } = subjectOf(await back(await depart(linked, [ada, root])))
    expect(dn.toString()).toBe('uid=ada,ou=people,o=Tremolo')
  })

  test('D8: claims never become part of the filter', async () => {
    for (const sub of ['*', 'r*', '*)(uid=*', 'x)(|(uid=root', 'root)(&', 'x\u0000']) {
      const login = await depart(linked, [ada, root])
      tokens.claims = { ...tokens.claims, sub }
      const { dn } = subjectOf(await back(login))
      expect(dn.parent?.toString()).toBe('ou=outside,o=Tremolo')
    }
  })

  test('D8: a missing claim or a second match is a refusal', async () => {
    const twin = person('uid=ada,ou=others,o=Tremolo', { uid: ['ada'], objectClass: ['person'] })
    expect((await back(await depart(linked, [ada, twin]))).kind).toBe('rejected')
    expect((await back(await depart({ ...linked, lookupFilter: '(uid=${upn})' }, [ada]))).kind).toBe('rejected')
  })
})

describe('D19: where a login leads', () => {
  test("does not depend on the issuer's answer", async () => {
    const outcome = await back(await depart(), { target: 'https://evil.test/', redirect_uri: 'https://evil.test/' })
    expect(outcome.kind).toBe('authenticated')
    expect(JSON.stringify(outcome)).not.toContain('evil.test')
    expect(redeemed[0]?.get('redirect_uri')).toBe('https://portal.test/auth/oidc')
  })
})

describe('a logout', () => {
  const session = (idToken?: string): SessionHandle => ({
    id: 's1',
    chain: 'c',
    level: 1,
    started: new Date(),
    authenticated: new Date(),
    expires: new Date(),
    read: async (slot) => (slot === 'openid:test' && idToken !== undefined ? { idToken } : undefined),
    write: async () => {},
    mark: async () => {},
  })
  const event = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const claims = (more: JWTPayload = {}): JWTPayload => ({
    iss: issuer.url,
    aud: 'gate',
    iat: seconds(),
    exp: seconds() + 60,
    jti: Math.random().toString(),
    events: event,
    sid: 'sid-1',
    ...more,
  })
  const tell = async (on: AuthMechanism, token: string, path = '/backchannel-logout') =>
    on.serve?.(
      fakeRequest({
        method: 'POST',
        url: `https://portal.test/auth/oidc${path}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ logout_token: token }).toString(),
      }),
      path,
    )

  test('also logs out at the issuer, with a fixed way back', async () => {
    const on = await mechanism({ postLogoutRedirectURI: 'https://portal.test/bye' })
    const there = new URL((await on.afterLogout?.(session('ey.id'), fakeRequest({}))) ?? '')
    expect(there.href.split('?')[0]).toBe(`${issuer.url}/end`)
    expect(there.searchParams.get('id_token_hint')).toBe('ey.id')
    expect(there.searchParams.get('post_logout_redirect_uri')).toBe('https://portal.test/bye')
    expect(await on.afterLogout?.(session(), fakeRequest({}))).toBeUndefined()
    const off = await mechanism({ endSession: 'false' })
    expect(await off.afterLogout?.(session('ey.id'), fakeRequest({}))).toBeUndefined()
  })

  test('from the issuer ends the session it names, or all sessions of the user', async () => {
    const on = await mechanism()
    expect((await tell(on, await signedToken(key, claims({ sub: 'ada' }))))?.status).toBe(200)
    const { sid: _sid, ...bySub } = claims({ sub: 'ada' })
    expect((await tell(on, await signedToken(key, bySub)))?.status).toBe(200)
    expect(ended).toEqual([
      JSON.stringify(['openid', issuer.url, 'gate', 'sid', 'sid-1']),
      JSON.stringify(['openid', issuer.url, 'gate', 'sub', 'ada']),
    ])
  })

  test('that repeats a token, or is invalid, ends nothing', async () => {
    const on = await mechanism()
    const once = await signedToken(key, claims())
    expect((await tell(on, once))?.status).toBe(200)
    const { jti: _jti, ...nameless } = claims()
    const { sid: _sid, ...ofNobody } = claims()
    const { exp: _exp, ...endless } = claims()
    const wrong = [
      once,
      await signedToken(foreign, claims()),
      await signedToken(key, claims({ nonce: 'n' })),
      await signedToken(key, claims({ events: {} })),
      await signedToken(key, claims({ events: undefined })),
      await signedToken(key, claims({ exp: seconds() - 600 })),
      await signedToken(key, claims({ sid: 7 })),
      await signedToken(key, nameless),
      await signedToken(key, ofNobody),
      await signedToken(key, endless),
    ]
    for (const token of wrong) expect((await tell(on, token))?.status).toBe(400)
    expect(ended).toHaveLength(1)
  })

  test('for another client is left to that client', async () => {
    const on = await mechanism()
    for (const more of [{ aud: 'other' }, { iss: 'https://evil.test' }]) {
      expect(await tell(on, await signedToken(key, claims(more)))).toBeUndefined()
    }
    expect(await tell(on, 'rubbish')).toBeUndefined()
    expect(ended).toEqual([])
  })

  test('by the front channel needs the session id and the issuer', async () => {
    const on = await mechanism()
    const visit = (query: Record<string, string>) =>
      on.serve?.(
        fakeRequest({ url: `https://portal.test/auth/oidc/frontchannel-logout?${new URLSearchParams(query)}` }),
        '/frontchannel-logout',
      )
    expect(await visit({ sid: 'sid-1' })).toBeUndefined()
    expect(await visit({ iss: 'https://evil.test', sid: 'sid-1' })).toBeUndefined()
    expect(await visit({ iss: issuer.url, sid: '' })).toBeUndefined()
    expect((await visit({ iss: issuer.url, sid: 'sid-1' }))?.status).toBe(200)
    expect(ended).toHaveLength(1)
    expect(await on.serve?.(fakeRequest({}), '/other')).toBeUndefined()
  })
})

describe('parameters', () => {
  const problems = (params: ParamValues): string[] => {
    const issues = noIssues()
    openIdConnect.prepare(fakeParams({ ...basic(), ...params }), fakeParams({}), issues, fakeParseContext())
    return issueTexts(issues.list)
  }

  test('of OpenUnison are accepted', () => {
    expect(
      problems({
        bearerTokenName: 'oidcBearerToken',
        defaultObjectClass: 'inetOrgPerson',
        forceAuthentication: 'true',
        hd: '',
        linkToDirectory: 'false',
        lookupFilter: '(uid=${sub})',
        responseType: 'code',
        scope: 'openid email profile',
        userLookupClassName: 'com.tremolosecurity.unison.proxy.auth.openidconnect.loadUser.LoadJWTFromAccessToken',
        jwtTokenAttributeName: 'id_token',
        usePKCE: 'true',
      }),
    ).toEqual([])
  })

  test.each<[ParamValues, RegExp]>([
    [{ issuer: 'http://issuer.example.com' }, /http is accepted on this machine only/],
    [{ responseType: 'token' }, /must be one of code/],
    [{ scope: 'email' }, /must hold openid/],
    [{ bearerTokenName: 'my token' }, /bearerTokenName/],
    [{ userLookupClassName: 'com.example.Mine' }, /must be id_token, userinfo/],
    [{ jwtTokenAttributeName: 'access_token' }, /must be id_token/],
    [{ loginHintEnabled: 'true' }, /loginHintAttribute/],
    [{ loginHintFromUser: 'false' }, /from attributes only/],
    [{ idpURL: 'https://issuer.test/auth' }, /"loadTokenURL" is required/],
    [{ idpURL: 'javascript:alert(1)', loadTokenURL: 'https://issuer.test/t' }, /must start with https/],
    [{ usePkce: 'false' }, /^warning .*PKCE is always used/],
    [{ linkToDirectory: 'true', lookupFilter: '(uid=${sub}' }, /lookupFilter/],
  ])('%o: %s', (params, message) => {
    expect(problems(params)).toEqual([expect.stringMatching(message)])
  })

  test('an issuer without discovery is used by its configured endpoints, and its keys verify', async () => {
    const { url } = issuer
    const login = await depart({ idpURL: `${url}/a`, loadTokenURL: `${url}/token`, jwksURL: `${url}/certs` })
    expect(login.asked.pathname).toBe('/issuer/a')
    expect((await back(login)).kind).toBe('authenticated')
    const other = await depart({ idpURL: `${url}/a`, loadTokenURL: `${url}/token`, jwksURL: `${url}/certs` })
    tokens.signer = foreign
    expect((await back(other)).kind).toBe('rejected')
    expect(issuer.calls).not.toContain('/issuer/.well-known/openid-configuration')
  })

  test('may be those of an OpenUnison issuer, which is then known without its name', () => {
    const of = (params: ParamValues) => {
      const issues = noIssues()
      const given = { clientid: 'gate', secretid: 's', noMatchOU: 'oidc', ...params }
      const config = parseOpenIdConnect(fakeParams(given), issues, fakeParseContext())
      return { issuer: config.issuer, endpoints: config.endpoints, issues: issueTexts(issues.list) }
    }
    const idp = 'https://k8sou.example.com/auth/idp/k8sIdp'
    expect(of({ idpURL: `${idp}/auth`, loadTokenURL: `${idp}/token` })).toEqual({
      issuer: idp,
      endpoints: undefined,
      issues: [],
    })
    for (const [idpURL, loadTokenURL] of [
      [`${idp}/auth`, 'https://elsewhere.test/auth/idp/k8sIdp/token'],
      ['https://idp.example.com/authorize', 'https://idp.example.com/token'],
      [`${idp}/auth?x=/auth`, `${idp}/token`],
    ] as const) {
      expect(of({ idpURL, loadTokenURL }).issues).toEqual([expect.stringContaining('"issuer" is required')])
    }
  })
})
