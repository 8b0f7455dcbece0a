import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, jwtVerify, UnsecuredJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import type { GrantSource } from '#features/sts/grants/token-grants.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate } from '#kernel/template.ts'
import { tokenAlgorithms } from '#protocols/jwt/signing-key.ts'
import { FakeCluster } from '#testing/sts/fake-cluster.ts'
import { type IssuingFixture, issuingFixture } from '#testing/sts/token-issuing-fixture.ts'

async function refusal(attempt: Promise<unknown>): Promise<GatewayError> {
  try {
    await attempt
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('a token was issued')
}

/** No token, one audit row, and the OAuth code. */
async function refused(fixture: IssuingFixture, token: string, code: string): Promise<GatewayError> {
  const error = await refusal(fixture.exchange(token))
  expect(error.keyword ?? error.code).toBe(code)
  expect(fixture.audit).toHaveLength(1)
  expect(fixture.audit[0]).toMatchObject({ kind: 'token', action: 'refuse', target: 'cloud', requestId: 'request-1' })
  expect(fixture.audit[0]).not.toHaveProperty('value')
  expect(JSON.stringify(fixture.audit)).not.toContain(token.slice(0, 40) || 'nothing')
  return error
}

const template = (text: string) => parseTemplate(text, { keys: false, attributes: true })
const shared = { name: 'cart-0', uid: 'pod-1' }

describe('a token for a workload', () => {
  it('has the claims and header that every consumer accepts', async () => {
    const fixture = await issuingFixture()
    const { token, expiresInSeconds, refreshAfterSeconds, workload } = await fixture.exchange(
      await fixture.cluster().token(),
    )
    const now = fixture.clock.millis / 1000
    const { payload, protectedHeader } = await jwtVerify(token, fixture.publicKey, {
      issuer: 'https://issuer.example.com/cloud',
      audience: 'https://cloud.example.com',
      currentDate: fixture.clock.now(),
    })
    expect(Object.keys(protectedHeader).sort()).toEqual(['alg', 'kid', 'typ'])
    expect(protectedHeader).toMatchObject({ alg: 'RS256', typ: 'JWT' })
    expect(payload).toEqual({
      iss: 'https://issuer.example.com/cloud',
      sub: 'k8s:shop:cart',
      aud: 'https://cloud.example.com',
      iat: now,
      nbf: now - 60,
      exp: now + 900,
      jti: expect.any(String),
      cluster: 'k8s',
      namespace: 'shop',
      saname: 'cart',
    })
    expect({ expiresInSeconds, refreshAfterSeconds, workload }).toEqual({
      expiresInSeconds: 900,
      refreshAfterSeconds: 600,
      workload: 'system:serviceaccount:shop:cart',
    })
  })

  it('is audited with jti, kid, rule, pod and kind of review', async () => {
    const fixture = await issuingFixture()
    const { token } = await fixture.exchange(await fixture.cluster().token({ pod: shared }))
    const [row] = fixture.audit
    expect(row).toMatchObject({
      kind: 'token',
      action: 'issue',
      target: 'cloud',
      subject: 'system:serviceaccount:shop:cart',
      attribute: 'jti',
      value: decodeJwt(token).jti,
      requestId: 'request-1',
    })
    expect(JSON.parse(row?.reason ?? '')).toMatchObject({
      kid: decodeProtectedHeader(token).kid,
      rule: 'filter (&(namespace=shop)(saname=cart))',
      sub: 'k8s:shop:cart',
      cluster: 'k8s',
      pod: 'cart-0',
      podUid: 'pod-1',
      node: 'node-1',
      review: 'online',
      remote: '10.1.2.3',
      ttl: 900,
      credential: expect.stringMatching(/^JTI=/),
    })
    expect(row).toMatchObject({ id: row?.value, requestId: row?.value, workflow: { id: row?.value, name: 'sts' } })
    const again = await fixture.exchange(await fixture.cluster().token({ pod: shared }), 'request-2')
    const [first, second] = fixture.audit.map(({ reason = '', recurring = 0 }) => reason.slice(0, recurring))
    expect(first).toBe(second)
    expect(first).toMatch(/^\{"kid":.*"podUid":"pod-1".*"remote":"10\.1\.2\.3"$/)
    expect(decodeJwt(again.token).jti).toBe('request-2')
  })

  it('is counted by endpoint, outcome and reason', async () => {
    const fixture = await issuingFixture()
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    await refusal(fixture.exchange('no token'))
    await refusal(fixture.exchange(await cluster.token({ account: 'thief' })))
    fixture.failing.audit = new Error('disk full')
    await refusal(fixture.exchange(await cluster.token()))
    expect(fixture.counted).toEqual([
      'cloud issued',
      'cloud refused invalid_grant',
      'cloud refused access_denied',
      'cloud failed internal',
    ])
  })

  it("is not issued if it can't be audited", async () => {
    const fixture = await issuingFixture()
    fixture.failing.audit = new Error('disk full')
    expect((await refusal(fixture.exchange(await fixture.cluster().token()))).message).toBe('disk full')
  })

  it('C14: lives as long as the endpoint says, and never longer than the subject token', async () => {
    const fixture = await issuingFixture({ endpoint: { ttlSeconds: 1800 } })
    const long = await fixture.exchange(await fixture.cluster().token({ seconds: 86_400 * 365 }))
    const short = await fixture.exchange(await fixture.cluster().token({ seconds: 601 }))
    expect([long.expiresInSeconds, short.expiresInSeconds]).toEqual([1800, 601])
    expect(decodeJwt(short.token).exp).toBe(fixture.clock.millis / 1000 + 601)
  })

  it('C15: is refused if its subject is longer than the consumer accepts', async () => {
    const account = 'a'.repeat(120)
    const options = { rules: ['(namespace=shop)'] }
    const forGoogle = await issuingFixture({ ...options, endpoint: { preset: 'gcp' } })
    await refused(forGoogle, await forGoogle.cluster().token({ account }), 'invalid_target')
    const forAmazon = await issuingFixture({ ...options, endpoint: { preset: 'aws' } })
    expect(decodeJwt((await forAmazon.exchange(await forAmazon.cluster().token({ account }))).token).sub).toBe(
      `k8s:shop:${account}`,
    )
  })

  it.each([
    ['spiffe://prod.example.com/ns/${namespace}/sa/${saname}', 'spiffe://prod.example.com/ns/shop/sa/cart'],
    ['spiffe://prod.example.com/${namespace}/../${saname}', undefined],
    ['spiffe://prod.example.com/${namespace}//${saname}', undefined],
    ['spiffe://prod.example.com/${namespace}:${saname}', undefined],
    ['spiffe://Prod.example.com/${namespace}', undefined],
    ['spiffe://prod.example.com', undefined],
  ])('of a trust domain has a SPIFFE ID as subject, or is refused: %s', async (subject, expected) => {
    const fixture = await issuingFixture({ endpoint: { preset: 'spiffe', subject: template(subject) } })
    const issued = fixture.exchange(await fixture.cluster().token())
    if (expected === undefined) await expect(issued).rejects.toMatchObject({ keyword: 'invalid_target' })
    else expect(decodeJwt((await issued).token).sub).toBe(expected)
  })

  it('has a subject in the endpoint’s own format', async () => {
    const fixture = await issuingFixture({ endpoint: { subject: template('ns/${namespace}/sa/${saname}') } })
    expect(decodeJwt((await fixture.exchange(await fixture.cluster().token())).token).sub).toBe('ns/shop/sa/cart')
  })

  it('C18: has the additional claims, of every source type, and none that replace its own', async () => {
    const rule = (attribute: string, sourceType: 'user' | 'static' | 'composite', source: string) => ({
      attribute,
      sourceType,
      source,
      path: [],
    })
    const fixture = await issuingFixture({
      claims: [
        rule('pod', 'user', 'pod-name'),
        rule('groups', 'user', 'groups'),
        rule('stage', 'static', 'test'),
        rule('who', 'composite', '${namespace}.${saname}'),
        rule('sub', 'static', 'somebody else'),
      ],
    })
    const claims = decodeJwt((await fixture.exchange(await fixture.cluster().token({ pod: shared }))).token)
    expect(claims).toMatchObject({ pod: 'cart-0', stage: 'test', who: 'shop.cart', sub: 'k8s:shop:cart' })
    expect(claims['groups']).toEqual(['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'])
  })

  it('has AWS session tags as lists of one, and the roles it may assume', async () => {
    const role = 'arn:aws:iam::123456789012:role/cart'
    const tags = { principal: new Map([['team', template('${namespace}')]]), transitive: ['team'] }
    const fixture = await issuingFixture({ endpoint: { preset: 'aws', awsTags: tags, awsRoles: [role] } })
    expect(decodeJwt((await fixture.exchange(await fixture.cluster().token())).token)).toMatchObject({
      'https://aws.amazon.com/tags': { principal_tags: { team: ['shop'] }, transitive_tag_keys: ['team'] },
      'https://aws.amazon.com/roles': [role],
    })
  })

  it.each(tokenAlgorithms)('is signed with %s, and has no jti, if the endpoint says so', async (algorithm) => {
    const fixture = await issuingFixture({ endpoint: { algorithm, jti: false } })
    const { token } = await fixture.exchange(await fixture.cluster().token())
    const { payload, protectedHeader } = await jwtVerify(token, fixture.publicKey, { algorithms: [algorithm] })
    expect(protectedHeader.alg).toBe(algorithm)
    expect(payload.jti).toBeUndefined()
    expect(fixture.audit[0]?.value).toEqual(expect.any(String))
  })
})

describe('a credential that is not accepted', () => {
  const cases: Record<string, (cluster: FakeCluster) => Promise<string> | string> = {
    'C1: of another audience': (cluster) => cluster.token({ audiences: ['vault'] }),
    'A5: made for the API server': (cluster) => cluster.token({ audiences: [cluster.issuer] }),
    'A5: good for the API server as well': (cluster) => cluster.token({ audiences: ['gatehouse-sts', cluster.issuer] }),
    'of another issuer': (cluster) => cluster.token({ claims: { iss: 'https://elsewhere.example.com' } }),
    'of another cluster': (cluster) => new FakeCluster(Date.now, cluster.issuer).token(),
    'signed by another key under the same kid': (cluster) =>
      cluster.token({ key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey }),
    expired: (cluster) => cluster.token({ seconds: -1 }),
    'expired within the tolerance': (cluster) => cluster.token({ seconds: -10 }),
    'about to expire': (cluster) => cluster.token({ seconds: 3 }),
    'not valid yet': (cluster) => cluster.token({ claims: { nbf: Math.floor(Date.now() / 1000) + 3600 } }),
    'without an expiry': (cluster) => cluster.token({ claims: { exp: undefined } }),
    'C2: of a user that is not a service account': (cluster) => cluster.token({ claims: { sub: 'jane' } }),
    'C2: of a look-alike name of the same length': (cluster) =>
      cluster.token({ claims: { sub: 'xxxxxx:xxxxxxxxxxxxxx:shop:cart' } }),
    'C2: of a name with one part more': (cluster) =>
      cluster.token({ claims: { sub: 'system:serviceaccount:shop:cart:x' } }),
    'that names two accounts': (cluster) => cluster.token({ claims: { sub: 'system:serviceaccount:shop:admin' } }),
    'bound to no pod': (cluster) => cluster.token({ pod: null }),
    'alg:none': () => new UnsecuredJWT({ sub: 'system:serviceaccount:shop:cart' }).encode(),
    huge: (cluster) => cluster.token({ claims: { filler: 'x'.repeat(20_000) } }),
    binary: () => Buffer.from([0, 255, 128, 10]).toString('latin1'),
    'that is not a JWT': () => 'abc.def.ghi',
    empty: () => '',
  }
  for (const [name, make] of Object.entries(cases)) {
    it(`${name}: invalid_grant, a row, no token`, async () => {
      const fixture = await issuingFixture({ rules: ['(namespace=*)'] })
      const error = await refused(fixture, await make(fixture.cluster()), 'invalid_grant')
      expect(error.status).toBe(400)
    })
  }

  it('C1: is one whose audience the API server does not confirm', async () => {
    const fixture = await issuingFixture()
    fixture.cluster().ignoresAudiences = true
    await refused(fixture, await fixture.cluster().token(), 'invalid_grant')
    expect(fixture.cluster().reviews[0]?.audiences).toEqual(['gatehouse-sts'])
  })

  it('C2: is one that the API server assigns to another account', async () => {
    for (const username of ['xxxxxx:xxxxxxxxxxxxxx:shop:cart', 'system:serviceaccount:kube-system:admin']) {
      const fixture = await issuingFixture({ rules: ['(namespace=*)'] })
      fixture.cluster().reviewed = (review) => ({ ...review, username })
      await refused(fixture, await fixture.cluster().token(), 'invalid_grant')
    }
  })

  it('C2: is one without the group of service accounts, or of another pod', async () => {
    const fixture = await issuingFixture()
    fixture.cluster().reviewed = (review) => ({ ...review, groups: ['system:authenticated'] })
    await refused(fixture, await fixture.cluster().token(), 'invalid_grant')
    const other = await issuingFixture()
    const extra = new Map([['authentication.kubernetes.io/pod-uid', ['another']]])
    other.cluster().reviewed = (review) => ({ ...review, extra })
    await refused(other, await other.cluster().token(), 'invalid_grant')
  })

  it('is accepted from old sidecars if the endpoint says so, and reviewed for the API server', async () => {
    const fixture = await issuingFixture({ endpoint: { acceptApiServerAudience: true } })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token({ audiences: [cluster.issuer] }))
    await fixture.exchange(await cluster.token())
    expect(cluster.reviews.map(({ audiences }) => audiences)).toEqual([[], ['gatehouse-sts']])
    const error = await refusal(fixture.exchange(await cluster.token({ audiences: ['vault'] })))
    expect(error.keyword).toBe('invalid_grant')
  })

  it('is accepted without a pod if the endpoint says so', async () => {
    const fixture = await issuingFixture({ endpoint: { acceptTokensWithoutPod: true } })
    await fixture.exchange(await fixture.cluster().token({ pod: null }))
    expect(fixture.audit[0]?.action).toBe('issue')
  })
})

describe('rules', () => {
  it('C3: no rule denies everyone', async () => {
    const fixture = await issuingFixture({ rules: [] })
    const error = await refused(fixture, await fixture.cluster().token(), 'access_denied')
    expect(error.status).toBe(403)
    expect(fixture.audit[0]?.subject).toBe('system:serviceaccount:shop:cart')
  })

  it('C4: a dot in a name is a dot', async () => {
    const fixture = await issuingFixture({ rules: ['(saname=app.prod*)'] })
    await fixture.exchange(await fixture.cluster().token({ account: 'app.prod-1' }))
    fixture.audit.length = 0
    await refused(fixture, await fixture.cluster().token({ account: 'appxprod-1' }), 'access_denied')
  })

  it('C4: an unknown attribute does not pass a negation', async () => {
    const fixture = await issuingFixture({ rules: ['(!(team=evil))'] })
    await refused(fixture, await fixture.cluster().token(), 'access_denied')
  })

  it('see the pod, the node and the cluster', async () => {
    const fixture = await issuingFixture({ rules: ['(&(cluster=k8s)(pod-name=cart-0)(node-name=node-1))'] })
    await fixture.exchange(await fixture.cluster().token({ pod: shared }))
    expect(fixture.audit[0]?.action).toBe('issue')
  })
})

describe('reviews', () => {
  it('C17: are shared by concurrent callers, and cached for ten seconds', async () => {
    const fixture = await issuingFixture()
    const cluster = fixture.cluster()
    const token = await cluster.token()
    let go = (): void => {}
    cluster.pause = new Promise((resolve) => {
      go = resolve
    })
    const all = Promise.all(Array.from({ length: 20 }, (_, i) => fixture.exchange(token, `request-${i}`)))
    await new Promise((resolve) => setTimeout(resolve, 20))
    go()
    expect(new Set((await all).map((issued) => issued.token)).size).toBe(20)
    expect(cluster.reviews).toHaveLength(1)
    fixture.clock.millis += 9_999
    await fixture.exchange(token)
    expect(cluster.reviews).toHaveLength(1)
    fixture.clock.millis += 1
    await fixture.exchange(token)
    expect(cluster.reviews).toHaveLength(2)
  })

  it('end the tokens of a deleted pod within ten seconds', async () => {
    const fixture = await issuingFixture()
    const cluster = fixture.cluster()
    const token = await cluster.token({ pod: shared })
    await fixture.exchange(token)
    cluster.deletePod('pod-1')
    fixture.clock.millis += 10_000
    expect((await refusal(fixture.exchange(token))).keyword).toBe('invalid_grant')
  })

  it('are required by default: an unavailable API server means no token, with Retry-After', async () => {
    const fixture = await issuingFixture()
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    fixture.audit.length = 0
    cluster.away = true
    const error = await refusal(fixture.exchange(await cluster.token()))
    expect([error.status, error.retryAfter]).toEqual([503, 2])
    expect(fixture.audit[0]?.action).toBe('refuse')
  })

  it("may be missing for as long as offline-ok says, and not before the cluster's first answer", async () => {
    const fixture = await issuingFixture({ endpoint: { offlineSeconds: 60 } })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    cluster.away = true
    fixture.clock.millis += 60_000
    await fixture.exchange(await cluster.token())
    expect(JSON.parse(fixture.audit[1]?.reason ?? '')).toMatchObject({ review: 'offline', pod: 'cart-0' })
    fixture.clock.millis += 1
    expect((await refusal(fixture.exchange(await cluster.token()))).status).toBe(503)

    const cold = await issuingFixture({ endpoint: { offlineSeconds: 60 } })
    cold.cluster().away = true
    expect((await refusal(cold.exchange(await cold.cluster().token()))).status).toBe(503)
  })

  it('offline-ok still refuses by signature, audience and rule', async () => {
    const fixture = await issuingFixture({ endpoint: { offlineSeconds: 60 } })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    cluster.away = true
    const codes = []
    for (const token of [
      await cluster.token({ audiences: ['vault'] }),
      await cluster.token({ key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey }),
      await cluster.token({ account: 'other' }),
    ]) {
      codes.push((await refusal(fixture.exchange(token))).keyword)
    }
    expect(codes).toEqual(['invalid_grant', 'invalid_grant', 'access_denied'])
  })

  it('offline-ok accepts a token for the API server from old sidecars, and no other', async () => {
    const fixture = await issuingFixture({ endpoint: { offlineSeconds: 60, acceptApiServerAudience: true } })
    const cluster = fixture.cluster()
    await fixture.exchange(await cluster.token())
    cluster.away = true
    await fixture.exchange(await cluster.token())
    await fixture.exchange(await cluster.token({ audiences: [cluster.issuer] }))
    const error = await refusal(fixture.exchange(await cluster.token({ audiences: ['vault'] })))
    expect(error.keyword).toBe('invalid_grant')
  })
})

describe('several clusters', () => {
  it('are distinguished by their keys, even if they share the name of the issuer', async () => {
    const fixture = await issuingFixture({ clusters: ['east', 'west'], endpoint: { clusters: ['east', 'west'] } })
    const subjects = []
    for (const name of ['east', 'west']) {
      subjects.push(decodeJwt((await fixture.exchange(await fixture.cluster(name).token())).token).sub)
    }
    expect(subjects).toEqual(['east:shop:cart', 'west:shop:cart'])
    expect(fixture.cluster('east').reviews).toHaveLength(1)
    expect(fixture.cluster('west').reviews).toHaveLength(1)
  })

  it('an unavailable one does not stop another, and does not count as a refusal', async () => {
    const fixture = await issuingFixture({ clusters: ['east', 'west'], endpoint: { clusters: ['east', 'west'] } })
    fixture.cluster('east').away = true
    await fixture.exchange(await fixture.cluster('west').token())
    expect((await refusal(fixture.exchange(await fixture.cluster('east').token()))).status).toBe(503)
  })

  it('one that never answers does not delay another', async () => {
    const never = new Promise<void>(() => {})
    const options = { clusters: ['east', 'west'], endpoint: { clusters: ['east', 'west'] } }
    const slow = await issuingFixture(options)
    slow.cluster('east').pause = never
    for (let i = 0; i < 50; i++) slow.exchange(await slow.cluster('east').token()).catch(() => {})
    await slow.exchange(await slow.cluster('west').token())

    const keyless = await issuingFixture(options)
    keyless.cluster('east').keysPause = never
    for (let i = 0; i < 50; i++) keyless.exchange(await keyless.cluster('east').token()).catch(() => {})
    const { token } = await keyless.exchange(await keyless.cluster('west').token())
    expect(decodeJwt(token).sub).toBe('west:shop:cart')
  })

  it('the first one counts if two have the same key', async () => {
    const options = { clusters: ['east', 'west'], endpoint: { clusters: ['east', 'west'] } }
    const fixture = await issuingFixture(options)
    Object.defineProperty(fixture.cluster('west'), 'publicKey', { get: () => fixture.cluster('east').publicKey })
    for (let i = 0; i < 5; i++) {
      expect(decodeJwt((await fixture.exchange(await fixture.cluster('east').token())).token).sub).toBe(
        'east:shop:cart',
      )
    }
  })

  it('one that the endpoint does not name is not accepted', async () => {
    const fixture = await issuingFixture({ clusters: ['east', 'west'], endpoint: { clusters: ['east'] } })
    const error = await refusal(fixture.exchange(await fixture.cluster('west').token()))
    expect(error.keyword).toBe('invalid_grant')
  })
})

describe('the rate limit', () => {
  it('counts each pod separately, before the API server is asked', async () => {
    const fixture = await issuingFixture({ endpoint: { rateLimit: { burst: 2, perMinute: 6 } } })
    const cluster = fixture.cluster()
    const again = async () => fixture.exchange(await cluster.token({ pod: shared }))
    await again()
    await again()
    const error = await refusal(again())
    expect([error.status, error.retryAfter, cluster.reviews.length]).toEqual([429, 10, 2])
    await fixture.exchange(await cluster.token({ pod: { name: 'cart-1', uid: 'pod-2' } }))
    fixture.clock.millis += 10_000
    await again()
  })
})

describe('the audit of refusals', () => {
  it("can't be filled by anonymous callers: beyond a rate they are counted", async () => {
    const fixture = await issuingFixture()
    for (let i = 0; i < 150; i++) await refusal(fixture.exchange('abc.def.ghi'))
    expect(fixture.audit).toHaveLength(100)
    fixture.clock.millis += 1000
    await refusal(fixture.exchange('abc.def.ghi'))
    expect(JSON.parse(fixture.audit.at(-1)?.reason ?? '')).toMatchObject({ alsoRefused: 50 })
  })

  it('every token has its own jti', async () => {
    const fixture = await issuingFixture()
    const token = await fixture.cluster().token()
    await fixture.exchange(token)
    await fixture.exchange(token, 'request-2')
    expect(fixture.audit.map(({ action }) => action)).toEqual(['issue', 'issue'])
    expect(fixture.audit[0]?.value).not.toBe(fixture.audit[1]?.value)
  })
})

describe('with grants', () => {
  const limits = {
    namespaces: ['shop'],
    namespaceLabels: new Map<string, string>(),
    serviceAccounts: [],
    maxServiceAccounts: 1,
    maxGrants: 1,
    staleSeconds: 300,
  }
  const endpoint = { grants: limits }
  const none = { kind: 'none' } as const

  it('a workload that no rule allows gets a token by a grant, which the audit names', async () => {
    const asked: string[] = []
    const grants: GrantSource = {
      find: (name, { source, namespace, account }) => {
        asked.push(`${name} ${source} ${namespace} ${account}`)
        return { kind: 'granted', grant: 'shop/carts' }
      },
    }
    const fixture = await issuingFixture({ endpoint, rules: ['(saname=other)'], grants })
    await fixture.exchange(await fixture.cluster().token())
    expect(JSON.parse(fixture.audit[0]?.reason ?? '')).toMatchObject({ grant: 'shop/carts' })
    expect(fixture.audit[0]?.reason).not.toContain('"rule"')
    // Once for the decision, and once before it is signed.
    expect(asked).toEqual(Array(2).fill('cloud k8s shop cart'))
  })

  it('a rule that passes comes first', async () => {
    const grants: GrantSource = { find: () => none }
    const fixture = await issuingFixture({ endpoint, grants })
    await fixture.exchange(await fixture.cluster().token())
    expect(JSON.parse(fixture.audit[0]?.reason ?? '')).toMatchObject({
      rule: 'filter (&(namespace=shop)(saname=cart))',
    })
  })

  it('an endpoint that honors no grants ignores them', async () => {
    const grants: GrantSource = { find: () => ({ kind: 'granted', grant: 'shop/carts' }) }
    const fixture = await issuingFixture({ rules: [], grants })
    await refused(fixture, await fixture.cluster().token(), 'access_denied')
  })

  it('without one, the workload is denied; while they are unknown, it is asked to come back', async () => {
    const denied = await issuingFixture({ endpoint, rules: [], grants: { find: () => none } })
    await refused(denied, await denied.cluster().token(), 'access_denied')
    const find = () => ({ kind: 'unknown', reason: 'the grants are not known' }) as const
    const unknown = await issuingFixture({ endpoint, rules: [], grants: { find } })
    const error = await refusal(unknown.exchange(await unknown.cluster().token()))
    expect([error.status, error.retryAfter, error.message]).toEqual([503, 5, 'the grants are not known'])
  })

  it('nothing is signed for a grant that is deleted during the exchange', async () => {
    let looks = 0
    const find = () => (looks++ === 0 ? ({ kind: 'granted', grant: 'shop/carts' } as const) : none)
    const fixture = await issuingFixture({ endpoint, rules: [], grants: { find } })
    await refused(fixture, await fixture.cluster().token(), 'access_denied')
    expect(looks).toBe(2)
  })
})
