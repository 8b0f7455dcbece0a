import { createHmac, sign } from 'node:crypto'
import { decodeJwt, type JWTPayload, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SubjectIssuer } from '#config/configuration/token-endpoint.ts'
import { GatewayError } from '#kernel/errors.ts'
import { ecKey, FakeIssuer, rsaKey, signedToken, type TestKey } from '#testing/login/fake-issuer.ts'
import { type IssuingFixture, type IssuingFixtureOptions, issuingFixture } from '#testing/sts/token-issuing-fixture.ts'

const audience = 'https://gatehouse.example.com'
const [key, other, elliptic] = [rsaKey('k1'), rsaKey('k1'), ecKey('k2')]

let github: FakeIssuer
let gitlab: FakeIssuer

beforeEach(async () => {
  github = await FakeIssuer.start([key])
  gitlab = await FakeIssuer.start([other])
})
afterEach(() => Promise.all([github.close(), gitlab.close()]))

const issuer = (name: string, at: FakeIssuer, more: Partial<SubjectIssuer> = {}): SubjectIssuer => ({
  name,
  issuer: at.url,
  audience,
  jwksUri: undefined,
  authorities: undefined,
  algorithms: ['RS256'],
  claims: ['repository', 'ref', 'environment', 'project_path', 'run_attempt', 'teams'],
  kubernetes: false,
  clockToleranceSeconds: 30,
  ...more,
})

const builds = (options: IssuingFixtureOptions = {}): Promise<IssuingFixture> =>
  issuingFixture({
    rules: [
      '(&(issuer=github)(repository=acme/app)(ref=refs/heads/main))',
      '(&(issuer=gitlab)(project_path=acme/app))',
    ],
    ...options,
    endpoint: {
      clusters: [],
      subjectIssuers: [issuer('github', github), issuer('gitlab', gitlab)],
      ...options.endpoint,
    },
  })

/** The claims that GitHub Actions documents. */
const claims = ({ clock }: IssuingFixture, more: Readonly<Record<string, unknown>> = {}): JWTPayload => ({
  iss: github.url,
  aud: audience,
  sub: 'repo:acme/app:ref:refs/heads/main',
  repository: 'acme/app',
  ref: 'refs/heads/main',
  run_attempt: '1',
  jti: 'a-job',
  iat: clock.millis / 1000,
  nbf: clock.millis / 1000 - 600,
  exp: clock.millis / 1000 + 300,
  ...more,
})

async function refusalOf(fixture: IssuingFixture, token: string): Promise<GatewayError> {
  const error = await fixture.exchange(token).then(
    () => new Error('a token was issued'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof GatewayError)) throw error
  expect(fixture.audit.filter(({ action }) => action === 'issue')).toEqual([])
  expect(fixture.audit.at(-1)).toMatchObject({ kind: 'token', action: 'refuse', target: 'cloud' })
  expect(JSON.stringify(fixture.audit)).not.toContain(token.slice(0, 60))
  return error
}

describe('a subject of an issuer', () => {
  test('gets a token with its own subject that expires no later than its own, and is audited by name', async () => {
    const fixture = await builds({
      claims: [{ attribute: 'repository', sourceType: 'user', source: 'repository', path: [] }],
    })
    const { token, expiresInSeconds, workload } = await fixture.exchange(await signedToken(key, claims(fixture)))
    expect(decodeJwt(token)).toEqual({
      iss: fixture.endpoint.issuer,
      sub: 'github:repo:acme/app:ref:refs/heads/main',
      aud: fixture.endpoint.audience,
      iat: expect.any(Number),
      nbf: expect.any(Number),
      exp: fixture.clock.millis / 1000 + 300,
      jti: expect.any(String),
      repository: 'acme/app',
    })
    expect({ expiresInSeconds, workload }).toEqual({
      expiresInSeconds: 300,
      workload: 'github:repo:acme/app:ref:refs/heads/main',
    })
    const [row] = fixture.audit
    expect(row).toMatchObject({ subject: workload, requestor: workload, action: 'issue', target: 'cloud' })
    const reason = JSON.parse(row?.reason ?? '{}')
    expect(reason).toMatchObject({ issuer: 'github', review: 'keys', rule: expect.stringContaining('issuer=github') })
    expect(reason).not.toHaveProperty('cluster')
  })

  test('of another issuer is judged by its own claims', async () => {
    const fixture = await builds()
    const gitlabClaims = {
      iss: gitlab.url,
      sub: 'project_path:acme/app:ref_type:branch:ref:main',
      project_path: 'acme/app',
    }
    const { token } = await fixture.exchange(await signedToken(other, claims(fixture, gitlabClaims)))
    expect(decodeJwt(token).sub).toBe('gitlab:project_path:acme/app:ref_type:branch:ref:main')
  })

  test.each<[string, JWTPayload]>([
    ['another repository', { repository: 'acme/other' }],
    ['another branch', { ref: 'refs/heads/topic' }],
    ['letter case', { repository: 'Acme/App' }],
    ['a claim of the other issuer', { repository: undefined, project_path: 'acme/app' }],
    [
      'claims that look like attributes of the gateway',
      { repository: 'x', issuer: 'gitlab', project_path: 'acme/app' },
    ],
  ])('is denied with %s', async (_case, more) => {
    const fixture = await builds()
    const error = await refusalOf(fixture, await signedToken(key, claims(fixture, more)))
    expect([error.status, error.keyword]).toEqual([403, 'access_denied'])
    expect(fixture.audit[0]).toMatchObject({ subject: 'github:repo:acme/app:ref:refs/heads/main' })
    expect(JSON.parse(fixture.audit[0]?.reason ?? '{}')).toMatchObject({ issuer: 'github', error: 'access_denied' })
  })

  test('of an issuer listed for two audiences belongs to the one in its token', async () => {
    const subjectIssuers = [issuer('github', github), issuer('releases', github, { audience: 'releases' })]
    const rules = ['(&(issuer=releases)(repository=acme/app))']
    const fixture = await builds({ rules, endpoint: { subjectIssuers } })
    const { workload } = await fixture.exchange(await signedToken(key, claims(fixture, { aud: 'releases' })))
    expect(workload).toBe('releases:repo:acme/app:ref:refs/heads/main')
    fixture.audit.length = 0
    const elsewhere = await refusalOf(fixture, await signedToken(key, claims(fixture, { aud: 'elsewhere' })))
    expect(elsewhere.publicText).toBe(`The subject token is for another audience; wanted: ${audience}.`)
  })

  test('has lists, numbers and flags as texts', async () => {
    const fixture = await builds({ rules: ['(&(teams=b)(run_attempt=2)(environment=true))'] })
    const more = { teams: ['a', 'b'], run_attempt: 2, environment: true }
    await expect(fixture.exchange(await signedToken(key, claims(fixture, more)))).resolves.toBeDefined()
  })

  test('has its own rate limit', async () => {
    const fixture = await builds({ endpoint: { rateLimit: { burst: 2, perMinute: 1 } } })
    const token = await signedToken(key, claims(fixture))
    await fixture.exchange(token)
    await fixture.exchange(token)
    expect((await fixture.exchange(token).catch((error: GatewayError) => error)) as GatewayError).toMatchObject({
      status: 429,
    })
    const more = { sub: 'repo:acme/app:environment:production' }
    await expect(fixture.exchange(await signedToken(key, claims(fixture, more)))).resolves.toBeDefined()
  })
})

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The classic confusion: the public key, which anyone has, as a shared secret. */
function macWithPublicKey(publicKey: TestKey, content: JWTPayload): string {
  const text = `${part({ alg: 'HS256', kid: publicKey.kid, typ: 'JWT' })}.${part(content)}`
  const pem = publicKey.publicKey.export({ type: 'spki', format: 'pem' })
  return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`
}

describe('a token that is not accepted', () => {
  type Make = (fixture: IssuingFixture) => string | Promise<string>
  const cases: [string, Make, RegExp][] = [
    ['is not signed', (f) => new UnsecuredJWT(claims(f)).encode(), /not accepted|not valid/],
    ['is signed with the public key', (f) => macWithPublicKey(key, claims(f)), /not valid|not accepted/],
    ['is signed by another issuer with the same kid', (f) => signedToken(other, claims(f)), /not accepted/],
    ['is signed by an unknown key', (f) => signedToken(rsaKey('k9'), claims(f)), /not accepted/],
    [
      'is of an issuer that is not configured',
      (f) => signedToken(key, claims(f, { iss: 'https://x.example.com' })),
      /another issuer/,
    ],
    [
      'has an issuer with a slash more',
      (f) => signedToken(key, claims(f, { iss: `${github.url}/` })),
      /another issuer/,
    ],
    ['has no issuer', (f) => signedToken(key, claims(f, { iss: undefined })), /another issuer/],
    [
      'is for another audience',
      (f) => signedToken(key, claims(f, { aud: 'https://y.example.com' })),
      /another audience/,
    ],
    ['has no audience', (f) => signedToken(key, claims(f, { aud: undefined })), /audience|not valid/],
    ['is expired', (f) => signedToken(key, claims(f, { exp: f.clock.millis / 1000 - 1 })), /expired/],
    ['is long expired', (f) => signedToken(key, claims(f, { exp: f.clock.millis / 1000 - 3600 })), /expired/],
    ['never expires', (f) => signedToken(key, claims(f, { exp: undefined })), /not valid/],
    ['is not valid yet', (f) => signedToken(key, claims(f, { nbf: f.clock.millis / 1000 + 300 })), /not valid yet/],
    ['is from the future', (f) => signedToken(key, claims(f, { iat: f.clock.millis / 1000 + 300 })), /not valid yet/],
    ['has no subject', (f) => signedToken(key, claims(f, { sub: undefined })), /no usable sub/],
    ['has an empty subject', (f) => signedToken(key, claims(f, { sub: '' })), /no usable sub/],
    ['has an endless subject', (f) => signedToken(key, claims(f, { sub: 'x'.repeat(2000) })), /no usable sub/],
    ['is too long', (f) => signedToken(key, claims(f, { x: 'y'.repeat(20_000) })), /not accepted/],
    ['is not a token', () => 'a.b.c', /not accepted/],
    [
      'is not JSON',
      (f) => `${part({ alg: 'RS256' })}.${Buffer.from('[]').toString('base64url')}.${part(claims(f))}`,
      /not accepted/,
    ],
  ]
  test.each(cases)('%s', async (_case, make, text) => {
    const fixture = await builds()
    const error = await refusalOf(fixture, await make(fixture))
    expect(error.status).toBe(400)
    expect(error.publicText).toMatch(text)
  })

  test.each<[string, unknown]>([
    ['demands an extension', { alg: 'RS256', kid: 'k1', crit: ['exp'], exp: 1 }],
    ['demands nothing by an empty list', { alg: 'RS256', kid: 'k1', crit: [] }],
    ['has a payload that is not encoded', { alg: 'RS256', kid: 'k1', crit: ['b64'], b64: false }],
    ['has no algorithm', { kid: 'k1' }],
    ['has an algorithm that is a list', { alg: ['RS256'], kid: 'k1' }],
    ['has an algorithm in another case', { alg: 'rs256', kid: 'k1' }],
    ['has a kid that is a list', { alg: 'RS256', kid: ['k1'] }],
    ['has a kid that is a path', { alg: 'RS256', kid: '../../k1' }],
    ['has a header that is a list', [{ alg: 'RS256', kid: 'k1' }]],
    ['has a header that is null', null],
  ])('%s, although the issuer signed it', async (_, header) => {
    const fixture = await builds()
    const text = `${part(header)}.${part(claims(fixture))}`
    const signature = sign('sha256', Buffer.from(text), key.privateKey).toString('base64url')
    expect((await refusalOf(fixture, `${text}.${signature}`)).status).toBe(400)
  })

  test('has a pinned algorithm that the issuer does not support', async () => {
    github.keys = [key, elliptic]
    const fixture = await builds({ rules: ['(repository=acme/app)'] })
    const token = await signedToken(elliptic, claims(fixture))
    expect((await refusalOf(fixture, token)).status).toBe(400)
    const wider = await builds({
      rules: ['(repository=acme/app)'],
      endpoint: { subjectIssuers: [issuer('github', github, { algorithms: ['ES256'] })] },
    })
    await expect(wider.exchange(token)).resolves.toBeDefined()
  })

  test('is sent again after the keys were replaced', async () => {
    const fixture = await builds()
    const token = await signedToken(key, claims(fixture))
    await fixture.exchange(token)
    github.keys = [rsaKey('k1')]
    fixture.clock.millis += 11 * 60_000
    await fixture.exchange(await signedToken(other, claims(fixture, { iss: gitlab.url, project_path: 'acme/app' })))
    const again = await signedToken(key, claims(fixture))
    for (let i = 0; i < 200 && github.calls.length < 4; i++) {
      await fixture.exchange(again).catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(await fixture.exchange(again).catch((error: GatewayError) => error.status)).toBe(400)
  })
})

describe('an issuer', () => {
  test('that is unavailable is 503 with Retry-After, and does not delay the other', async () => {
    for (const path of ['/issuer/.well-known/openid-configuration', '/issuer/certs']) {
      github.overrides.set(path, (_request, response) => response.writeHead(500).end())
    }
    const fixture = await builds()
    const error = await refusalOf(fixture, await signedToken(key, claims(fixture)))
    expect([error.status, error.retryAfter]).toEqual([503, expect.any(Number)])
    const fine = claims(fixture, { iss: gitlab.url, project_path: 'acme/app' })
    await expect(fixture.exchange(await signedToken(other, fine))).resolves.toBeDefined()
    github.overrides.clear()
    fixture.clock.millis += 3000
    await expect(fixture.exchange(await signedToken(key, claims(fixture)))).resolves.toBeDefined()
  })

  test('with a configured key URL is not asked for its discovery document', async () => {
    const from = issuer('github', github, { jwksUri: `${github.url}/certs` })
    const fixture = await builds({ endpoint: { subjectIssuers: [from] } })
    await fixture.exchange(await signedToken(key, claims(fixture)))
    expect(github.calls).toEqual(['/issuer/certs'])
  })
})

describe('a cluster by its keys', () => {
  const accountClaims = (fixture: IssuingFixture, more: Readonly<Record<string, unknown>> = {}): JWTPayload =>
    claims(fixture, {
      sub: 'system:serviceaccount:shop:cart',
      'kubernetes.io': {
        namespace: 'shop',
        serviceaccount: { name: 'cart', uid: 'u1' },
        pod: { name: 'cart-0', uid: 'pod-1' },
      },
      ...more,
    })
  const west = (more: Partial<SubjectIssuer> = {}) => issuer('west', github, { kubernetes: true, claims: [], ...more })

  test('authenticates service accounts, besides clusters with an API server', async () => {
    const fixture = await issuingFixture({
      rules: ['(&(cluster=west)(namespace=shop)(saname=cart)(pod-uid=pod-1))', '(cluster=k8s)'],
      endpoint: { clusters: ['k8s'], subjectIssuers: [west()] },
    })
    const { token, workload } = await fixture.exchange(await signedToken(key, accountClaims(fixture)))
    expect(decodeJwt(token)).toMatchObject({
      sub: 'west:shop:cart',
      cluster: 'west',
      namespace: 'shop',
      saname: 'cart',
    })
    expect(workload).toBe('system:serviceaccount:shop:cart')
    const near = await fixture.exchange(await fixture.cluster().token())
    expect(decodeJwt(near.token)).toMatchObject({ sub: 'k8s:shop:cart', cluster: 'k8s' })
  })

  test.each<[string, JWTPayload, RegExp]>([
    ['another audience', { aud: 'x' }, /another audience/],
    ['the audience of its API server too', { aud: [audience, 'ISSUER'] }, /another audience as well/],
    ['no pod', { 'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'cart', uid: 'u' } } }, /not accepted/],
    ['two names', { sub: 'system:serviceaccount:shop:till' }, /not accepted/],
    ['no account', { sub: 'repo:acme/app', 'kubernetes.io': undefined }, /not accepted/],
  ])('rejects a token with %s', async (_case, more, text) => {
    const fixture = await issuingFixture({ endpoint: { clusters: [], subjectIssuers: [west()] } })
    const { aud = audience } = more
    const given = {
      ...more,
      aud: Array.isArray(aud) ? aud.map((each) => (each === 'ISSUER' ? github.url : each)) : aud,
    }
    const error = await refusalOf(fixture, await signedToken(key, accountClaims(fixture, given)))
    expect(error.publicText).toMatch(text)
  })

  test('a name that Kubernetes does not allow gets no token, since it could be mistaken for two others', async () => {
    const fixture = await issuingFixture({
      rules: ['(namespace=*)'],
      endpoint: { clusters: [], subjectIssuers: [west()] },
    })
    const bound = { namespace: 'shop/cart', serviceaccount: { name: 'x' }, pod: { name: 'p', uid: 'u' } }
    const more = { sub: 'system:serviceaccount:shop/cart:x', 'kubernetes.io': bound }
    const error = await refusalOf(fixture, await signedToken(key, accountClaims(fixture, more)))
    expect(error.publicText).toMatch(/does not allow/)
  })

  test('its tokens are rejected where an issuer that is not a cluster is expected, and vice versa', async () => {
    const fixture = await builds()
    const fromCluster = await fixture.cluster().token()
    expect((await refusalOf(fixture, fromCluster)).publicText).toMatch(/another issuer/)
    const pods = await issuingFixture()
    const error = await refusalOf(pods, await signedToken(key, claims(pods)))
    expect(error.status).toBe(400)
  })
})
