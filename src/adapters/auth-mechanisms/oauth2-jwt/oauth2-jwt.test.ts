import type { JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { discoveryTimes } from '#protocols/jwt/discovered-key-set.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { FakeIssuer, rsaKey, signedToken } from '#testing/login/fake-issuer.ts'
import { type FakeModuleHost, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import oauth2Jwt from './oauth2-jwt.ts'

const root = 'o=Tremolo'
const [first, second] = [rsaKey('k1'), rsaKey('k2')]

let issuer: FakeIssuer
let now: number

beforeEach(async () => {
  issuer = await FakeIssuer.start([first])
  now = 1_800_000_000_000
})
afterEach(() => issuer.close())

const basic = (): ParamValues => ({
  issuer: issuer.url,
  audience: ['gatehouse'],
  fromWellKnown: 'true',
  linkToDirectory: 'false',
  noMatchOU: 'oauth2',
  uidAttr: 'sub',
  lookupFilter: '(uid=${sub})',
  defaultObjectClass: 'inetOrgPerson',
  realm: 'the "realm"',
  scope: 'auth',
})

const claims = (more: JWTPayload = {}): JWTPayload => ({
  iss: issuer.url,
  aud: 'gatehouse',
  sub: 'alice',
  iat: now / 1000,
  exp: now / 1000 + 3600,
  ...more,
})

async function mechanism(
  params: ParamValues = {},
  entries: readonly InsertEntry[] = [],
): Promise<{ mechanism: AuthMechanism; host: FakeModuleHost }> {
  const issues = noIssues()
  const prepared = oauth2Jwt.prepare(fakeParams({ ...basic(), ...params }), fakeParams({}), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const host = fakeModuleHost({ now: () => now, entries, publicKeys: { pinned: first.publicKey } })
  return { mechanism: await prepared.create(host), host }
}

const begin = async (on: AuthMechanism, token?: string, url?: string): Promise<AuthOutcome> =>
  on.begin({
    request: fakeRequest({
      ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
      ...(url === undefined ? {} : { url }),
    }),
    subject: undefined,
    root,
  })

const subjectOf = (outcome: AuthOutcome) => {
  if (outcome.kind !== 'authenticated') throw new Error(`not authenticated: ${JSON.stringify(outcome)}`)
  return outcome.subject
}

const reasonOf = (outcome: AuthOutcome): string => {
  if (outcome.kind !== 'rejected') throw new Error('not rejected')
  return outcome.reason
}

const person = (dn: string, attributes: Record<string, string[]>): InsertEntry => ({
  dn: Dn.parse(dn),
  attributes: Attributes.from(attributes),
})

describe('a caller without a lookup', () => {
  test('is a mock entry with the claims as attributes', async () => {
    const { mechanism: jwt } = await mechanism()
    const more = { groups: ['a', 'b'], level: 3, admin: false, address: { city: 'X' }, nothing: null }
    const subject = subjectOf(await begin(jwt, await signedToken(first, claims(more))))
    expect(subject.dn.toString()).toBe('sub=alice,ou=oauth2,o=Tremolo')
    expect(subject.uid).toBe('alice')
    expect(subject.attributes.toObject()).toMatchObject({
      sub: ['alice'],
      groups: ['a', 'b'],
      level: ['3'],
      admin: ['false'],
      address: ['{"city":"X"}'],
      objectClass: ['inetOrgPerson'],
    })
    expect(subject.attributes.has('nothing')).toBe(false)
  })

  test('of our own issuer is accepted until it expires, and not a second longer', async () => {
    const late = await signedToken(first, claims({ exp: now / 1000 - 1 }))
    const accepts = async (own: boolean, params: ParamValues = {}) => {
      const prepared = oauth2Jwt.prepare(
        fakeParams({ ...basic(), ...params }),
        fakeParams({}),
        noIssues(),
        fakeParseContext(),
      )
      const host = fakeModuleHost({ now: () => now, publicKeys: { pinned: first.publicKey } })
      const jwt = await prepared.create({ ...host, ownsIssuer: (one) => own && one === basic()['issuer'] })
      return (await begin(jwt, late)).kind === 'authenticated'
    }
    expect([await accepts(false), await accepts(true)]).toEqual([true, false])
    expect(await accepts(true, { clockToleranceSeconds: '5' })).toBe(true)
  })

  test('cannot place itself in another part of the tree', async () => {
    const { mechanism: jwt } = await mechanism()
    for (const sub of ['x,ou=admins', 'x,ou=admins,o=Tremolo', 'x+ou=admins', 'x\\,ou=admins', '"x",ou=admins']) {
      const { dn } = subjectOf(await begin(jwt, await signedToken(first, claims({ sub }))))
      expect(dn.rdns).toHaveLength(3)
      expect(dn.parent?.toString()).toBe('ou=oauth2,o=Tremolo')
      expect(Dn.parse(dn.toString()).equals(dn)).toBe(true)
      expect(dn.isWithin(Dn.parse('ou=admins,o=Tremolo'))).toBe(false)
    }
  })

  test.each<[string, Record<string, unknown>]>([
    ['missing', { sub: undefined }],
    ['empty', { sub: '' }],
    ['a number', { sub: 7 }],
    ['a list', { sub: ['alice'] }],
    ['an object', { sub: {} }],
  ])('is rejected when the identifying claim is %s', async (_case, more) => {
    const { mechanism: jwt } = await mechanism()
    const given = Object.fromEntries(
      Object.entries({ ...claims(), ...more }).filter(([, value]) => value !== undefined),
    )
    expect((await begin(jwt, await signedToken(first, given))).kind).toBe('rejected')
  })

  test('cannot replace a claim by one that differs in letter case', async () => {
    const { mechanism: jwt } = await mechanism()
    const outcome = await begin(jwt, await signedToken(first, claims({ SUB: 'admin' })))
    expect(reasonOf(outcome)).toBe('two claims differ in letter case only')
  })

  test('cannot choose the objectClass, and unusual names stay plain names', async () => {
    const { mechanism: jwt } = await mechanism()
    const odd = JSON.parse('{"objectClass":"admin","__proto__":"x","constructor":"y"}') as JWTPayload
    const { attributes } = subjectOf(await begin(jwt, await signedToken(first, { ...claims(), ...odd })))
    expect(attributes.values('objectClass')).toEqual(['inetOrgPerson'])
    expect(attributes.values('constructor')).toEqual(['y'])
  })
})

describe('a caller with a lookup', () => {
  const linked = { linkToDirectory: 'true', lookupFilter: '(&(uid=${sub})(objectClass=inetOrgPerson))' }
  const alice = person('uid=alice,ou=people,o=Tremolo', {
    uid: ['alice'],
    mail: ['alice@example.com'],
    objectClass: ['inetOrgPerson'],
  })
  const root2 = person('uid=root,ou=people,o=Tremolo', { uid: ['root'], objectClass: ['inetOrgPerson'] })

  test('is the one entry found; its values win and claims add the rest', async () => {
    const { mechanism: jwt } = await mechanism(linked, [alice, root2])
    const token = await signedToken(first, claims({ mail: 'other@example.com', team: 'x' }))
    const subject = subjectOf(await begin(jwt, token))
    expect(subject.dn.toString()).toBe('uid=alice,ou=people,o=Tremolo')
    expect(subject.attributes.values('mail')).toEqual(['alice@example.com'])
    expect(subject.attributes.values('team')).toEqual(['x'])
    expect(alice.attributes.has('team')).toBe(false)
  })

  test('is a mock entry if not found', async () => {
    const { mechanism: jwt } = await mechanism(linked, [root2])
    expect(subjectOf(await begin(jwt, await signedToken(first, claims()))).dn.toString()).toBe(
      'sub=alice,ou=oauth2,o=Tremolo',
    )
  })

  test('is rejected when several entries match', async () => {
    const twin = person('uid=alice,ou=others,o=Tremolo', { uid: ['alice'], objectClass: ['inetOrgPerson'] })
    const { mechanism: jwt, host } = await mechanism(linked, [alice, twin])
    expect(reasonOf(await begin(jwt, await signedToken(first, claims())))).toBe('lookupFilter finds several entries')
    expect(host.searches[0]?.limit).toBe(2)
  })

  test('is rejected when a claim of the filter is missing', async () => {
    const { mechanism: jwt, host } = await mechanism({ ...linked, lookupFilter: '(|(uid=${sub})(mail=${email}))' }, [
      alice,
    ])
    expect((await begin(jwt, await signedToken(first, claims()))).kind).toBe('rejected')
    for (const name of ['constructor', '__proto__', 'toString']) {
      const odd = await mechanism({ ...linked, lookupFilter: `(uid=\${${name}})` }, [alice])
      expect((await begin(odd.mechanism, await signedToken(first, claims()))).kind).toBe('rejected')
    }
    expect(host.searches).toEqual([])
  })

  test('is rejected when the filter compares mail with a claim that is not verified', async () => {
    const owner = person('uid=boss,ou=people,o=Tremolo', { uid: ['boss'], mail: ['boss@corp.test'] })
    const { mechanism: jwt } = await mechanism({ ...linked, lookupFilter: '(mail=${preferred_username})' }, [owner])
    const named = { preferred_username: 'boss@corp.test' }
    expect(reasonOf(await begin(jwt, await signedToken(first, claims(named))))).toContain('is not verified')
    const verified = { ...named, email: 'boss@corp.test', email_verified: true }
    expect(subjectOf(await begin(jwt, await signedToken(first, claims(verified)))).dn).toEqual(owner.dn)
  })

  test('D8: cannot widen the filter', async () => {
    const { mechanism: jwt } = await mechanism(linked, [alice, root2])
    for (const sub of ['*', 'r*', '*)(uid=*', 'x)(|(uid=root', 'root)(&', '\\72oot', 'x\u0000']) {
      const { dn } = subjectOf(await begin(jwt, await signedToken(first, claims({ sub }))))
      expect(dn.isWithin(Dn.parse('ou=oauth2,o=Tremolo'))).toBe(true)
    }
  })

  test('is looked up again after a few seconds', async () => {
    const entries = [alice]
    const { mechanism: jwt, host } = await mechanism(linked, entries)
    const token = await signedToken(first, claims())
    const before = await begin(jwt, token)
    expect(await begin(jwt, token)).toBe(before)
    expect(host.searches).toHaveLength(1)
    entries.pop()
    now += 3_000
    expect(subjectOf(await begin(jwt, token)).dn.toString()).toContain('ou=oauth2')
  })
})

describe('a refusal', () => {
  const challenge = (outcome: AuthOutcome) =>
    outcome.kind === 'rejected' ? outcome.headers?.['www-authenticate'] : undefined
  const realm = 'Bearer realm="the \\"realm\\"", scope="auth"'

  test('has no error code without a token', async () => {
    const { mechanism: jwt } = await mechanism()
    expect(challenge(await begin(jwt))).toBe(realm)
    const basicAuth = fakeRequest({ headers: { authorization: 'Basic dTpw' } })
    expect(challenge(await jwt.begin({ request: basicAuth, subject: undefined, root }))).toBe(realm)
  })

  test('D19: ignores a token in the query', async () => {
    const { mechanism: jwt } = await mechanism()
    const token = await signedToken(first, claims())
    expect(challenge(await begin(jwt, undefined, `http://localhost/?access_token=${token}`))).toBe(realm)
    expect(issuer.calls).toEqual([])
  })

  test('says invalid_token for an invalid token, and nothing about the token', async () => {
    const { mechanism: jwt } = await mechanism()
    const expired = await signedToken(first, claims({ exp: now / 1000 - 60 }))
    expect(challenge(await begin(jwt, expired))).toBe(
      `${realm}, error="invalid_token", error_description="The token is expired"`,
    )
    const foreign = await signedToken(first, claims({ aud: 'secret-audience' }))
    const outcome = await begin(jwt, foreign)
    expect(challenge(outcome)).toContain('error="invalid_token"')
    expect(JSON.stringify(outcome)).not.toContain('secret-audience')
    expect(JSON.stringify(outcome)).not.toContain(foreign.slice(-20))
  })

  test('says invalid_request for two Authorization headers', async () => {
    const { mechanism: jwt } = await mechanism()
    const token = await signedToken(first, claims())
    const request = { ...fakeRequest({}), headers: { authorization: [`Bearer ${token}`, `Bearer ${token}`] } }
    expect(challenge(await jwt.begin({ request, subject: undefined, root }))).toContain('error="invalid_request"')
  })

  test('is 503 instead if the issuer cannot be reached', async () => {
    const { mechanism: jwt } = await mechanism()
    const token = await signedToken(first, claims())
    issuer.overrides.set('/issuer/certs', (_request, response) => void response.writeHead(503).end())
    await expect(begin(jwt, token)).rejects.toMatchObject({ status: 503, retryAfter: 2 })
  })
})

describe('a verified token', () => {
  test('is remembered as the same object until it expires', async () => {
    const { mechanism: jwt } = await mechanism()
    const token = await signedToken(first, claims())
    const outcome = await begin(jwt, token)
    expect(await begin(jwt, token)).toBe(outcome)
    now += 3_599_000
    await begin(jwt, token)
    now += 31_000
    expect((await begin(jwt, token)).kind).toBe('rejected')
  })

  test('is forgotten when its key is removed', async () => {
    const { mechanism: jwt } = await mechanism()
    const token = await signedToken(first, claims())
    expect((await begin(jwt, token)).kind).toBe('authenticated')
    issuer.keys = [second]
    now += discoveryTimes.cooldown
    expect((await begin(jwt, await signedToken(second, claims()))).kind).toBe('authenticated')
    expect((await begin(jwt, token)).kind).toBe('rejected')
  })

  test('is forgotten when its key is removed and no new one is published', async () => {
    const { mechanism: jwt } = await mechanism()
    const token = await signedToken(first, claims())
    await begin(jwt, token)
    issuer.keys = [second]
    now += discoveryTimes.maxAge
    await expect.poll(async () => (await begin(jwt, token)).kind).toBe('rejected')
  })

  test('with the kid of another key is rejected', async () => {
    issuer.keys = [first, second]
    const { mechanism: jwt } = await mechanism()
    expect((await begin(jwt, await signedToken(first, claims(), { kid: 'k2' }))).kind).toBe('rejected')
    expect((await begin(jwt, await signedToken(second, claims(), { kid: 'k1' }))).kind).toBe('rejected')
  })

  test('is verified with a pinned key, without asking the issuer', async () => {
    const { mechanism: jwt } = await mechanism({ fromWellKnown: 'false', validationKey: 'pinned' })
    expect((await begin(jwt, await signedToken(first, claims()))).kind).toBe('authenticated')
    expect((await begin(jwt, await signedToken(second, claims(), { kid: 'k1' }))).kind).toBe('rejected')
    expect(issuer.calls).toEqual([])
  })
})

describe('parameters', () => {
  const problems = (params: ParamValues, without: readonly string[] = []) => {
    const issues = noIssues()
    const given = Object.fromEntries(
      Object.entries({ ...basic(), ...params }).filter(([name]) => !without.includes(name)),
    )
    const context = fakeParseContext()
    oauth2Jwt.prepare(fakeParams(given), fakeParams({}), issues, context)
    return { texts: issueTexts(issues.list), references: context.references }
  }

  test('it does not start without an audience', () => {
    expect(problems({}, ['audience']).texts).toEqual(['error params.audience: parameter "audience" is required'])
    expect(problems({ audience: [] }).texts).toHaveLength(1)
    expect(problems({ audience: ['', ''] }).texts).toHaveLength(1)
  })

  test('an http issuer on another host is rejected', () => {
    expect(problems({ issuer: 'http://issuer.example.com' }).texts).toEqual([
      expect.stringMatching(/^error params\.issuer\.0: "issuer": http is accepted on this machine only/),
    ])
  })

  test('a pinned key may belong to an issuer that is only a name', () => {
    const { texts, references } = problems({ issuer: 'my-issuer', fromWellKnown: 'false', validationKey: 'pinned' })
    expect(texts).toEqual([])
    expect(references).toEqual([{ kind: 'key', name: 'pinned', path: ['params', 'validationKey', 0] }])
  })

  test('without discovery a key is needed', () => {
    expect(problems({ fromWellKnown: 'false' }).texts).toEqual([
      'error params.validationKey: parameter "validationKey" is required unless fromWellKnown is "true"',
    ])
  })

  test('unsupported settings are rejected', () => {
    expect(problems({ webfingerCredentialLoader: 'x', target: 'y' }).texts).toEqual([
      expect.stringMatching(/webfingerCredentialLoader" is not supported/),
      expect.stringMatching(/target" is not supported/),
    ])
  })

  test('a lookup needs a filter that parses', () => {
    expect(problems({ linkToDirectory: 'true', lookupFilter: '' }).texts).toEqual([
      expect.stringMatching(/"lookupFilter" is required where/),
    ])
    expect(problems({ linkToDirectory: 'true', lookupFilter: '(uid=${sub}' }).texts).toEqual([
      expect.stringMatching(/^error params\.lookupFilter\.0: "lookupFilter": /),
    ])
  })

  test('uidAttr must be able to name an entry', () => {
    expect(problems({ uidAttr: 'https://x/uid' }).texts).toEqual([expect.stringMatching(/^error params\.uidAttr: /)])
  })
})

describe('pages of other origins', () => {
  const ask = (headers: Record<string, string>, method = 'OPTIONS') => fakeRequest({ method, headers })
  const preflight = { origin: 'https://app.example.com', 'access-control-request-method': 'PATCH' }

  test('are not served unless configured', async () => {
    const { mechanism: jwt } = await mechanism()
    expect(jwt.preflight).toBeUndefined()
    expect(jwt.responseHeaders).toBeUndefined()
  })

  test('get a preflight answer, never with credentials', async () => {
    const { mechanism: jwt } = await mechanism({ 'cors-headers': ['Content-Type', 'If-Match'] })
    const answer = jwt.preflight?.(ask(preflight))
    expect(answer?.status).toBe(204)
    expect(answer?.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-headers': 'Authorization, Content-Type, If-Match',
    })
    expect(Object.keys(answer?.headers ?? {})).not.toContain('access-control-allow-credentials')
    expect(jwt.preflight?.(ask(preflight, 'GET'))).toBeUndefined()
    expect(jwt.preflight?.(ask({ origin: preflight.origin }))).toBeUndefined()
  })

  test('are only served if they are listed', async () => {
    const { mechanism: jwt } = await mechanism({ 'cors-origins': ['https://app.example.com'] })
    expect(jwt.responseHeaders?.(ask(preflight, 'GET'))).toMatchObject({
      'access-control-allow-origin': 'https://app.example.com',
      vary: 'Origin',
    })
    for (const origin of ['https://app.example.com.evil.com', 'http://app.example.com', 'null']) {
      expect(jwt.preflight?.(ask({ ...preflight, origin }))).toBeUndefined()
      expect(jwt.responseHeaders?.(ask({ origin }, 'GET'))).toEqual({ vary: 'Origin' })
    }
  })

  test("are configured in OpenUnison's form as well", async () => {
    const all = ['Access-Control-Allow-Origin=*', 'Access-Control-Allow-Methods=*', 'Access-Control-Allow-Headers=*']
    const { mechanism: any } = await mechanism({ 'cors-headers': all })
    expect(any.preflight?.(ask(preflight))?.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'Authorization, *',
    })
    const some = [
      'Access-Control-Allow-Origin=https://app.example.com/',
      'Access-Control-Allow-Methods=GET, PATCH',
      'access-control-allow-headers=Content-Type, authorization',
      'Access-Control-Allow-Credentials=false',
    ]
    const { mechanism: one } = await mechanism({ 'cors-headers': some })
    expect(one.preflight?.(ask(preflight))?.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.example.com',
      'access-control-allow-methods': 'GET, PATCH',
      'access-control-allow-headers': 'Authorization, Content-Type',
    })
    expect(one.preflight?.(ask({ ...preflight, origin: 'https://elsewhere.test' }))).toBeUndefined()
  })

  test("what OpenUnison's form cannot mean is reported", () => {
    const issues = noIssues()
    const headers = [
      'Access-Control-Allow-Origin=app',
      'Access-Control-Allow-Methods=get\r\nset-cookie: a=b',
      'Access-Control-Allow-Headers=a b',
      'Access-Control-Allow-Credentials=true',
      'Access-Control-Max-Age=5',
    ]
    const params = { ...basic(), 'cors-headers': headers }
    oauth2Jwt.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
    expect(issues.list.map(({ level }) => level)).toEqual(['error', 'error', 'error', 'warning', 'warning'])
  })

  test('invalid header names and origins are rejected', () => {
    const issues = noIssues()
    const params = { ...basic(), 'cors-headers': ['X-A: b', '*'], 'cors-origins': ['https://a.example.com/', 'a'] }
    oauth2Jwt.prepare(fakeParams(params), fakeParams({}), issues, fakeParseContext())
    expect(issues.list.map(({ path }) => path.join('.'))).toEqual([
      'params.cors-headers.0',
      'params.cors-headers.1',
      'params.cors-origins.0',
      'params.cors-origins.1',
    ])
  })
})
