import { createSecretKey } from 'node:crypto'
import {
  createLocalJWKSet,
  decodeJwt,
  type JSONWebKeySet,
  type JWTPayload,
  jwtVerify,
  SignJWT,
  UnsecuredJWT,
} from 'jose'
import { describe, expect, test } from 'vitest'
import type { ExchangeRights, IssuerConfig, IssuerTrust } from '#config/configuration/issuer.ts'
import type { EntryDirectory } from '#identity/directory.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { KeyStore } from '#keys/key-store.ts'
import { tokenExchangeGrant } from '#protocols/sts/token-exchange.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { prepareMapping } from '#sdk/mapper/mapping.ts'
import { plainRule } from '#sdk/rule/rule.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
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
const secret = 'a-secret-of-the-gateway-0123456789abcdef'
const idTokenType = 'urn:ietf:params:oauth:token-type:id_token'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

const trust = (clientId: string, more: Partial<IssuerTrust> = {}): IssuerTrust => ({
  name: clientId,
  label: clientId,
  clientId,
  clientSecret: secret,
  redirectUris: [`https://${clientId}.test/back`],
  postLogoutRedirectUris: [],
  chain: 'people',
  codeSeconds: 60,
  tokenSeconds: 60,
  skewSeconds: 0,
  signedUserInfo: false,
  deviceGrant: false,
  ...more,
})

const rule = (constraint: string) => plainRule('filter', constraint)
const rights: ExchangeRights = {
  impersonation: true,
  delegation: true,
  audiences: ['orders', 'stock', 'sts'],
  clientRules: [rule('(kind=service)')],
  subjectRules: [rule('(team=sales)')],
}

const person = (uid: string, level = 20) =>
  subject(`uid=${uid},o=Tremolo`, { uid: [uid], kind: ['person'], team: ['sales'], mail: [`${uid}@corp.test`] }, level)
const service = (uid: string, level = 20) => subject(`uid=${uid},o=Tremolo`, { uid: [uid], kind: ['service'] }, level)

interface Options {
  readonly rights?: Partial<ExchangeRights> | undefined
  readonly offers?: boolean
}

async function setUp({ rights: changed = {}, offers = true }: Options = {}) {
  const clock = new SetClock()
  clock.now = Date.now()
  const keys = {
    ...tokenIssuer({ endpoint: 'idp:people', keypair: 'idp:people', maxTokenSeconds: 600 }),
    algorithm: 'RS256' as const,
  }
  const database = memoryDatabase(clock.read)
  const rings = tokenKeyRings({ store: new KeyStore(database), clock, issuers: [keys] })
  const claims = prepareMapping(
    [
      { attribute: 'sub', sourceType: 'user', source: 'uid', path: [] },
      { attribute: 'email', sourceType: 'user', source: 'mail', path: [] },
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
    rules: [rule('(uid=*)')],
    claims,
    claimNames: ['sub', 'email'],
    amr: new Map([['test', 'pwd']]),
    refreshGraceMillis: 0,
    trusts: [
      trust('wiki'),
      trust('orders', { redirectUris: [], tokenSeconds: 600 }),
      trust('stock', { redirectUris: [], tokenSeconds: 600 }),
      trust('elsewhere', { redirectUris: [] }),
      trust('sts', { chain: 'services', ...(offers ? { exchange: { ...rights, ...changed } } : {}) }),
    ],
    deviceChain: 'people',
    keys,
  }
  const sessions = new Map<string, Subject>([
    ['ada', person('ada')],
    ['bob', subject('uid=bob,o=Tremolo', { uid: ['bob'], team: ['other'] })],
    ['gateway', service('gateway')],
    ['weak', person('weak', 5)],
  ])
  const audited: AuditEntry[] = []
  const counted: string[] = []
  const rules = new RuleEvaluator({} as EntryDirectory, new Map(), silentLogger)
  const server = new IssuerServer({
    config,
    claims: await claims.create(fakeModuleHost()),
    changeSubject: async (subject) => subject,
    store: new IssuerStore(database),
    box: fakeSecretBox('issuer record'),
    tokenKeys: rings,
    rateLimits: new MemoryRateLimits(clock.read),
    keys: { secretKeys: async () => [createSecretKey(Buffer.alloc(32, 3))] },
    sessions: { end: async (_login, id) => sessions.delete(id) },
    present: async (id) => sessions.get(id),
    use: async () => {},
    audit: { append: async (rows) => void audited.push(...rows) },
    clock: clock.read,
    log: silentLogger,
    decide: (one, list) => rules.decide(one, list),
    level: ({ chain }) => (chain === 'people' ? 10 : 0),
    meter: { tokens: (_issuer, how, outcome) => void counted.push(`${how} ${outcome}`), answered: () => {} },
  })
  /** Stands for a chain for bearer tokens: the token is the name of a service. */
  const authenticate = async (chain: string, authorization: string | undefined): Promise<Subject> => {
    const caller = /^Bearer (\w+)$/.exec(authorization ?? '')?.[1]
    if (caller === undefined || chain !== 'services') throw new GatewayError('AUTH_REQUIRED', 'no bearer token')
    if (caller === 'anonymous') return service('anonymous', 0)
    return caller === 'ada' ? person('ada') : service(caller)
  }
  const exchange = (path: string, form?: URLSearchParams, headers: Record<string, string> = {}): Exchange => ({
    request: fakeRequest({
      url: `${origin}${mount}${path}`,
      headers: { ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }), ...headers },
      ...(form === undefined ? {} : { method: 'POST', body: form.toString() }),
    }),
    application: 'issuer',
    mount,
    pathInfo: path,
    subject: service('anonymous', 0),
    authenticate: (chain) => authenticate(chain, headers['authorization']),
  })
  /** An ID token of a login. */
  const login = async (sessionId: string, clientId = 'wiki'): Promise<string> => {
    const tokens = await server.mint({
      issuer: 'people',
      trust: clientId,
      subject: sessions.get(sessionId) ?? person(sessionId),
      sessionId,
      authenticated: clock.read(),
      how: 'login',
      request: fakeRequest({ url: origin }),
    })
    audited.length = 0
    return tokens?.idToken ?? ''
  }
  const ask = (form: Record<string, string | undefined>, headers: Record<string, string> = {}) => {
    const given = { grant_type: tokenExchangeGrant, subject_token_type: idTokenType, client_id: 'sts', ...form }
    const pairs = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
    return server.handle(exchange('/token', new URLSearchParams(pairs), headers))
  }
  const asGateway = { authorization: 'Bearer gateway' }
  const impersonate = (subjectToken: string, more: Record<string, string | undefined> = {}, headers = asGateway) =>
    ask({ subject_token: subjectToken, audience: 'orders', ...more }, headers)
  const delegate = (subjectToken: string, actorToken: string, more: Record<string, string | undefined> = {}) =>
    ask({
      subject_token: subjectToken,
      actor_token: actorToken,
      actor_token_type: idTokenType,
      audience: 'orders',
      client_secret: secret,
      ...more,
    })
  const published = async () => {
    const { body } = await server.handle(exchange('/certs'))
    return JSON.parse(String(body)) as JSONWebKeySet
  }
  const verified = async (token: string | undefined, audience: string): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(token ?? '', createLocalJWKSet(await published()), {
      issuer: `${origin}${mount}`,
      audience,
      currentDate: clock.read(),
    })
    return payload
  }
  const discovery = async () => json(await server.handle(exchange('/.well-known/openid-configuration')))
  return { server, clock, sessions, audited, counted, login, ask, impersonate, delegate, verified, discovery, rings }
}

const json = (answer: GatewayResponse) => JSON.parse(String(answer.body)) as Record<string, string>
const outcome = (answer: GatewayResponse) => [answer.status, json(answer)['error']]
const tokenOf = (answer: GatewayResponse): string => json(answer)['access_token'] ?? ''

describe('an impersonation', () => {
  test('gets a token of the user for the audience, as OpenUnison documents it', async () => {
    const { login, impersonate, verified, audited, counted, clock } = await setUp()
    const answer = await impersonate(await login('ada'), { requested_token_type: accessTokenType })
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
    const body = json(answer)
    expect(body).toEqual({
      access_token: expect.any(String),
      id_token: body['access_token'],
      issued_token_type: accessTokenType,
      token_type: 'Bearer',
      expires_in: 600,
    })
    const claims = await verified(body['access_token'], 'orders')
    expect(claims).toMatchObject({ sub: 'ada', email: 'ada@corp.test', amr: ['pwd'], auth_time: expect.any(Number) })
    expect(claims).not.toHaveProperty('act')
    expect(claims.exp).toBe(Math.floor(clock.now / 1000) + 600)
    expect(audited).toMatchObject([
      { action: 'issue', requestor: 'gateway', subject: 'ada', target: 'orders', value: claims.jti },
    ])
    expect(JSON.parse(audited[0]?.reason ?? '')).toMatchObject({ client: 'sts', mode: 'impersonation' })
    expect(counted).toContain('token_exchange issued')
  })

  test('can be repeated with the same token, each time for a new one', async () => {
    const { login, impersonate } = await setUp()
    const token = await login('ada')
    const [one, other] = [tokenOf(await impersonate(token)), tokenOf(await impersonate(token))]
    expect(decodeJwt(one).jti).not.toBe(decodeJwt(other).jti)
  })

  test('ends with the session of the user', async () => {
    const { login, impersonate, sessions, audited } = await setUp()
    const token = await login('ada')
    const exchanged = tokenOf(await impersonate(token))
    sessions.delete('ada')
    audited.length = 0
    expect(outcome(await impersonate(token))).toEqual([400, 'invalid_request'])
    expect(outcome(await impersonate(exchanged))).toEqual([400, 'invalid_request'])
    expect(audited.map(({ action, value }) => [action, value])).toEqual([
      ['refuse', undefined],
      ['refuse', undefined],
    ])
  })

  test('has the current data of the user, and none for another user in the session', async () => {
    const { login, impersonate, sessions } = await setUp()
    const token = await login('ada')
    sessions.set('ada', subject('uid=ada,o=Tremolo', { uid: ['ada'], team: ['sales'], mail: ['new@corp.test'] }))
    expect(decodeJwt(tokenOf(await impersonate(token)))).toMatchObject({ email: 'new@corp.test' })
    sessions.set('ada', person('eve'))
    expect(outcome(await impersonate(token))).toEqual([400, 'invalid_request'])
  })

  test('a token that was exchanged gets none that lasts longer', async () => {
    const { login, impersonate, clock, verified } = await setUp()
    const first = await impersonate(await login('ada'))
    clock.pass(400)
    const second = await impersonate(tokenOf(first), { audience: 'stock' })
    expect([json(first)['expires_in'], json(second)['expires_in']]).toEqual([600, 200])
    const claims = await verified(tokenOf(second), 'stock')
    expect(claims.exp).toBe(decodeJwt(tokenOf(first)).exp)
    clock.pass(201)
    expect(outcome(await impersonate(tokenOf(second)))).toEqual([400, 'invalid_request'])
  })
})

describe('a delegation', () => {
  test('names the actor, and within it earlier actors', async () => {
    const { login, delegate, impersonate, sessions, audited } = await setUp()
    sessions.set('printer', service('printer'))
    const [gateway, printer] = [await login('gateway', 'sts'), await login('printer', 'sts')]
    const first = tokenOf(await delegate(await login('ada'), gateway))
    expect(decodeJwt(first)).toMatchObject({ sub: 'ada', aud: 'orders', act: { sub: 'gateway' } })
    const second = tokenOf(await delegate(first, printer, { audience: 'stock' }))
    expect(decodeJwt(second)).toMatchObject({ sub: 'ada', act: { sub: 'printer', act: { sub: 'gateway' } } })
    expect(audited.at(-1)).toMatchObject({ action: 'issue', requestor: 'printer', subject: 'ada', target: 'stock' })
    const third = tokenOf(await impersonate(second))
    expect(decodeJwt(third)['act']).toEqual({ sub: 'printer', act: { sub: 'gateway' } })
  })

  test('the number of actors is limited', async () => {
    const { login, delegate } = await setUp()
    const gateway = await login('gateway', 'sts')
    let token = await login('ada')
    for (let i = 0; i < 8; i++) token = tokenOf(await delegate(token, gateway))
    expect(outcome(await delegate(token, gateway))).toEqual([400, 'invalid_request'])
  })

  test('the client authenticates by its secret or by its chain', async () => {
    const { login, ask, delegate } = await setUp()
    const [user, actor] = [await login('ada'), await login('gateway', 'sts')]
    const basic = (given: string) => ({ authorization: `Basic ${Buffer.from(given).toString('base64')}` })
    const form = { subject_token: user, actor_token: actor, actor_token_type: idTokenType, audience: 'orders' }
    const byHeader = { ...form, client_id: undefined }
    expect((await ask(byHeader, basic(`sts:${secret}`))).status).toBe(200)
    expect((await ask(form, { authorization: 'Bearer gateway' })).status).toBe(200)
    expect(outcome(await ask(form))).toEqual([401, 'invalid_client'])
    expect(outcome(await ask(byHeader))).toEqual([401, 'invalid_client'])
    const wrong = await ask(byHeader, basic('sts:wrong'))
    expect([...outcome(wrong), wrong.headers['www-authenticate']]).toEqual([
      401,
      'invalid_client',
      'Basic realm="token"',
    ])
    expect(outcome(await delegate(user, actor, { client_secret: 'wrong' }))).toEqual([401, 'invalid_client'])
    expect(outcome(await ask(form, { authorization: 'Bearer ada' }))).toEqual([403, 'access_denied'])
  })

  test.each([
    ['of a login to another application', async ({ login }: Fixture) => login('gateway', 'wiki')],
    ['of a user that no rule allows', async ({ login }: Fixture) => login('ada', 'sts')],
    [
      'of an exchange',
      async ({ login, impersonate }: Fixture) => {
        return tokenOf(await impersonate(await login('ada'), { audience: 'sts' }))
      },
    ],
    [
      'of a session that has ended',
      async ({ login, sessions }: Fixture) => {
        const token = await login('gateway', 'sts')
        sessions.delete('gateway')
        return token
      },
    ],
    ['that is text', async () => 'text'],
  ])('refuses an actor token %s', async (_, actorOf) => {
    const fixture = await setUp()
    const actor = await actorOf(fixture)
    const user = await fixture.login('ada')
    const answer = await fixture.delegate(user, actor)
    expect([answer.status >= 400 && answer.status < 500, json(answer)['access_token']]).toEqual([true, undefined])
    expect(fixture.audited.map(({ action }) => action)).toEqual(['refuse'])
  })
})

type Fixture = Awaited<ReturnType<typeof setUp>>

describe('refused, with an entry in the audit:', () => {
  const forged = async (change: (claims: JWTPayload) => JWTPayload, { login, rings }: Fixture): Promise<string> => {
    const key = await rings.active('idp:people')
    const claims = change(decodeJwt(await login('ada')))
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const content = `${part({ alg: key.alg, kid: key.kid, typ: 'JWT' })}.${part(claims)}`
    return `${content}.${(await key.sign(Buffer.from(content))).toString('base64url')}`
  }
  const seconds = () => Math.floor(Date.now() / 1000)

  const subjects: Record<string, (fixture: Fixture) => Promise<string>> = {
    'of alg none': async ({ login }) => new UnsecuredJWT(decodeJwt(await login('ada'))).encode(),
    'signed by a shared secret': async ({ login }) =>
      await new SignJWT(decodeJwt(await login('ada'))).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.alloc(32, 1)),
    'with a changed claim': async ({ login }) => {
      const [head, , signature] = (await login('ada')).split('.')
      return [head, Buffer.from('{"sub":"root"}').toString('base64url'), signature].join('.')
    },
    'of another issuer': (fixture) => forged((claims) => ({ ...claims, iss: 'https://other.test/x' }), fixture),
    'for an unknown audience': (fixture) => forged((claims) => ({ ...claims, aud: 'unknown' }), fixture),
    'without an audience': (fixture) => forged(({ aud: _, ...claims }) => claims, fixture),
    'without an expiry': (fixture) => forged(({ exp: _, ...claims }) => claims, fixture),
    'that is expired': (fixture) => forged((claims) => ({ ...claims, exp: seconds() - 5 }), fixture),
    'that is not valid yet': (fixture) => forged((claims) => ({ ...claims, nbf: seconds() + 500 }), fixture),
    'without an id': (fixture) => forged(({ jti: _, ...claims }) => claims, fixture),
    'with an id that was not issued': (fixture) => forged((claims) => ({ ...claims, jti: 'made-up' }), fixture),
    'of another user': (fixture) => forged((claims) => ({ ...claims, sub: 'root' }), fixture),
    'that is too long': async ({ login }) => `${await login('ada')}${'x'.repeat(17_000)}`,
    'that is text': async () => 'text',
  }
  test.each(Object.entries(subjects))('a subject token %s', async (_, tokenFor) => {
    const fixture = await setUp()
    const answer = await fixture.impersonate(await tokenFor(fixture))
    expect(outcome(answer)).toEqual([400, 'invalid_request'])
    expect(String(answer.body)).not.toContain('elsewhere')
    expect(fixture.audited).toMatchObject([{ action: 'refuse', requestor: 'gateway', target: 'orders' }])
  })

  const forms: Record<string, [Record<string, string | undefined>, number, string]> = {
    'an unknown client': [{ client_id: 'nobody' }, 401, 'invalid_client'],
    'no client': [{ client_id: undefined }, 401, 'invalid_client'],
    'a client that does not exchange': [{ client_id: 'wiki' }, 400, 'unauthorized_client'],
    'a wrong secret': [{ client_secret: 'wrong' }, 401, 'invalid_client'],
    'no audience': [{ audience: undefined }, 400, 'invalid_request'],
    'an audience that is not listed': [{ audience: 'elsewhere' }, 400, 'invalid_target'],
    'an audience that does not exist': [{ audience: 'nowhere' }, 400, 'invalid_target'],
    'a resource': [{ resource: 'https://orders.test' }, 400, 'invalid_target'],
    'a scope': [{ scope: 'openid' }, 400, 'invalid_scope'],
    'no subject token': [{ subject_token: undefined }, 400, 'invalid_request'],
    'an unknown type': [{ subject_token_type: 'urn:x:saml2' }, 400, 'invalid_request'],
    'an unknown requested type': [{ requested_token_type: 'urn:x:saml2' }, 400, 'invalid_request'],
    'an actor type without an actor': [{ actor_token_type: idTokenType }, 400, 'invalid_request'],
    'an actor without a type': [{ actor_token: 'x' }, 400, 'invalid_request'],
  }
  test.each(Object.entries(forms))('%s', async (_, [form, status, error]) => {
    const { login, impersonate, audited, counted } = await setUp()
    const answer = await impersonate(await login('ada'), form)
    expect([...outcome(answer), answer.headers['cache-control']]).toEqual([status, error, 'no-store'])
    expect(audited.map(({ action, kind }) => [action, kind])).toEqual([['refuse', 'token']])
    expect(counted.at(-1)).toBe('token_exchange refused')
  })

  test('a caller that no chain or rule accepts', async () => {
    const { login, ask, impersonate } = await setUp()
    const token = await login('ada')
    expect(outcome(await ask({ subject_token: token, audience: 'orders' }))).toEqual([401, 'invalid_client'])
    expect(outcome(await ask({ subject_token: token, audience: 'orders', client_secret: secret }))).toEqual([
      401,
      'invalid_client',
    ])
    const asked = (caller: string) => impersonate(token, {}, { authorization: `Bearer ${caller}` })
    expect(outcome(await asked('anonymous'))).toEqual([401, 'invalid_client'])
    expect(outcome(await asked('ada'))).toEqual([403, 'access_denied'])
  })

  test('a user that no rule allows, or who logged in too weakly for the audience', async () => {
    const { login, impersonate } = await setUp()
    expect(outcome(await impersonate(await login('bob')))).toEqual([403, 'access_denied'])
    expect(outcome(await impersonate(await login('weak')))).toEqual([403, 'access_denied'])
  })

  test.each([{ clientRules: [] }, { subjectRules: [] }])('everything without rules: %j', async (rights) => {
    const { login, impersonate } = await setUp({ rights })
    expect(outcome(await impersonate(await login('ada')))).toEqual([403, 'access_denied'])
  })

  test('a mode that the trust does not offer', async () => {
    const [one, other] = [
      await setUp({ rights: { impersonation: false } }),
      await setUp({ rights: { delegation: false } }),
    ]
    expect(outcome(await one.impersonate(await one.login('ada')))).toEqual([400, 'unauthorized_client'])
    const actor = await other.login('gateway', 'sts')
    expect(outcome(await other.delegate(await other.login('ada'), actor))).toEqual([400, 'unauthorized_client'])
  })
})

describe('an issuer', () => {
  test('announces and serves the grant only if a trust offers it', async () => {
    const [offers, not] = [await setUp(), await setUp({ offers: false })]
    expect((await offers.discovery())['grant_types_supported']).toContain(tokenExchangeGrant)
    expect((await not.discovery())['grant_types_supported']).not.toContain(tokenExchangeGrant)
    const form = { subject_token: await not.login('ada'), audience: 'orders', client_secret: secret }
    expect(outcome(await not.ask(form))).toEqual([400, 'unsupported_grant_type'])
  })

  test('issues no token that it could not audit', async () => {
    const { login, impersonate, audited } = await setUp()
    const token = await login('ada')
    audited.push = () => {
      throw new Error('the audit is full')
    }
    expect(outcome(await impersonate(token))).toEqual([500, 'server_error'])
  })

  test('limits exchanges from one address, without an entry for each', async () => {
    const { impersonate, audited } = await setUp()
    for (let i = 0; i < 600; i++) await impersonate('text', { client_id: 'nobody' })
    const entries = audited.length
    const answer = await impersonate('text')
    expect([...outcome(answer), answer.headers['retry-after']]).toEqual([429, 'slow_down', '1'])
    expect(audited).toHaveLength(entries)
  })
})
