import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { TokenReview } from '#protocols/kubernetes/cluster.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import type { TokenReviewer } from '#sdk/target/token-review.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import serviceAccount from './oauth2-k8s-service-account.ts'

const tutorial: ParamValues = {
  k8sTarget: 'k8s',
  linkToDirectory: 'false',
  noMatchOU: 'oauth2',
  uidAttr: 'sub',
  lookupFilter: '(uid=${sub})',
  defaultObjectClass: 'inetOrgPerson',
  realm: 'kubernetes',
  scope: 'auth',
}
const root = 'o=Tremolo'
const username = 'system:serviceaccount:openunison:scim-gateway'
const accepted: TokenReview = {
  authenticated: true,
  error: undefined,
  username,
  uid: 'u-1',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:openunison', 'system:authenticated'],
  extra: new Map([
    ['authentication.kubernetes.io/pod-name', ['scim-1']],
    ['authentication.kubernetes.io/pod-uid', ['p-1']],
    ['other.example.com/pod-name', ['evil']],
  ]),
  audiences: ['gatehouse'],
}

/** Answers every review by `answer`, after `gate`. */
class FakeCluster {
  answer: TokenReview | Error = accepted
  gate: Promise<void> = Promise.resolve()
  readonly calls: { token: string; audiences: readonly string[] }[] = []

  asTarget(): TokenReviewer {
    const none = async (): Promise<never> => {
      throw new GatewayError('NOT_SUPPORTED', 'no users')
    }
    return {
      findUser: none,
      createUser: none,
      syncUser: none,
      deleteUser: none,
      reviewToken: async (token, audiences) => {
        this.calls.push({ token, audiences })
        await this.gate
        if (this.answer instanceof Error) throw this.answer
        return this.answer
      },
    }
  }
}

let now: number
let cluster: FakeCluster

beforeEach(() => {
  now = 1_800_000_000_000
  cluster = new FakeCluster()
})

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (claims: object): string => `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`
const token = (seconds = 3600, more: object = {}): string => jwt({ exp: now / 1000 + seconds, ...more })

async function mechanism(more: ParamValues = {}, entries: readonly InsertEntry[] = []): Promise<AuthMechanism> {
  const issues = noIssues()
  const params = fakeParams({ ...tutorial, audience: ['gatehouse'], ...more })
  const prepared = serviceAccount.prepare(params, fakeParams({}), issues, fakeParseContext())
  expect(issues.ok).toBe(true)
  return prepared.create(fakeModuleHost({ now: () => now, entries, targets: { k8s: cluster.asTarget() } }))
}

const begin = async (on: AuthMechanism, bearer?: string): Promise<AuthOutcome> =>
  on.begin({
    request: fakeRequest(bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } }),
    subject: undefined,
    root,
  })

const subjectOf = (outcome: AuthOutcome) => {
  if (outcome.kind !== 'authenticated') throw new Error(`not authenticated: ${JSON.stringify(outcome)}`)
  return outcome.subject
}

describe('an accepted service account', () => {
  test('is known by sub and by username, with the attributes that the cluster returns', async () => {
    const subject = subjectOf(await begin(await mechanism(), token()))
    expect(subject.uid).toBe(username)
    const named = Dn.parse(`username=${username},ou=oauth2,o=Tremolo`)
    expect(subject.dn.equals(Dn.parse(`sub=${username},ou=oauth2,o=Tremolo`))).toBe(true)
    expect(subject.otherNames?.some((name) => name.equals(named))).toBe(true)
    expect(subject.attributes.toObject()).toEqual({
      sub: [username],
      username: [username],
      uid: ['u-1'],
      groups: accepted.groups,
      namespace: ['openunison'],
      saname: ['scim-gateway'],
      'pod-name': ['scim-1'],
      'pod-uid': ['p-1'],
      objectClass: ['inetOrgPerson'],
    })
  })

  test('noMatchOU, uidAttr and defaultObjectClass decide its name and its class', async () => {
    const on = await mechanism({ noMatchOU: 'robots', uidAttr: 'uid', defaultObjectClass: 'account' })
    const subject = subjectOf(await begin(on, token()))
    expect([subject.uid, subject.dn.toString()]).toEqual(['u-1', 'uid=u-1,ou=robots,o=Tremolo'])
    expect(subject.attributes.values('objectClass')).toEqual(['account'])
  })

  test('is reviewed by the cluster of k8sTarget', async () => {
    const other = new FakeCluster()
    const targets = { k8s: cluster.asTarget(), other: other.asTarget() }
    const params = fakeParams({ ...tutorial, audience: ['gatehouse'], k8sTarget: 'other' })
    const prepared = serviceAccount.prepare(params, fakeParams({}), noIssues(), fakeParseContext())
    await begin(await prepared.create(fakeModuleHost({ now: () => now, targets })), token())
    expect([cluster.calls.length, other.calls.length]).toEqual([0, 1])
  })

  test('D19: is reviewed with our audience', async () => {
    await begin(await mechanism({ audience: ['gatehouse', 'b'] }), token())
    expect(cluster.calls[0]?.audiences).toEqual(['gatehouse', 'b'])
  })

  test('may be an entry of the directory', async () => {
    const entry = {
      dn: Dn.parse('uid=robot,ou=people,o=Tremolo'),
      attributes: Attributes.from({ uid: ['robot'], account: [username] }),
    }
    const on = await mechanism({ linkToDirectory: 'true', lookupFilter: '(account=${username})' }, [entry])
    const subject = subjectOf(await begin(on, token()))
    expect(subject.dn).toBe(entry.dn)
    expect(subject.otherNames).toEqual([])
    expect(subject.attributes.first('uid')).toBe('robot')
    expect(subject.attributes.first('namespace')).toBe('openunison')
    const unlinked = await mechanism({ linkToDirectory: 'false', lookupFilter: '(account=${username})' }, [entry])
    expect(subjectOf(await begin(unlinked, token())).dn.toString()).toContain('ou=oauth2')
    const unknown = await mechanism({ linkToDirectory: 'true', lookupFilter: '(account=${uid})' }, [entry])
    expect(subjectOf(await begin(unknown, token())).dn.toString()).toContain('ou=oauth2')
  })

  test('is remembered for ten seconds, and not longer than its token', async () => {
    const on = await mechanism()
    const long = token()
    const outcome = await begin(on, long)
    now += 9_999
    expect(await begin(on, long)).toBe(outcome)
    now += 1
    await begin(on, long)
    expect(cluster.calls).toHaveLength(2)
    const short = token(5)
    await begin(on, short)
    now += 5_000
    expect((await begin(on, short)).kind).toBe('rejected')
    expect(cluster.calls).toHaveLength(3)
  })

  test('is reviewed once for all callers that wait with the same token', async () => {
    const on = await mechanism()
    let open = () => {}
    cluster.gate = new Promise((resolve) => {
      open = resolve
    })
    const same = token()
    const waiting = [begin(on, same), begin(on, same), begin(on, token(1000))]
    open()
    const [a, b] = await Promise.all(waiting)
    expect(a).toBe(b)
    expect(cluster.calls).toHaveLength(2)
  })
})

describe('rejected', () => {
  test.each<[string, Partial<TokenReview>]>([
    ['not authenticated', { authenticated: false }],
    ['an error beside authenticated', { error: 'webhook failed' }],
    ['a person', { username: 'alice', groups: ['system:authenticated'] }],
    ['a name that only ends like an account', { username: 'abcdefghijklmnopqrstuvkube-system:admin' }],
    ['a name with a prefix', { username: `x${username}` }],
    ['a name with too many parts', { username: `${username}:x` }],
    ['a name with an empty part', { username: 'system:serviceaccount::app' }],
    ['a name with a line break', { username: `${username}\nx:y` }],
    ['no group of service accounts', { groups: ['system:authenticated'] }],
    ['a node', { username: 'system:node:n1', groups: ['system:nodes'] }],
  ])('%s', async (_case, change) => {
    cluster.answer = { ...accepted, ...change }
    const outcome = await begin(await mechanism(), token())
    expect(outcome).toMatchObject({
      kind: 'rejected',
      headers: {
        'www-authenticate':
          'Bearer realm="kubernetes", scope="auth", error="invalid_token", error_description="The token was not accepted"',
      },
    })
  })

  test.each<[string, Partial<TokenReview>, object]>([
    ['an audience that is not confirmed', { audiences: [] }, {}],
    ['an audience other than the confirmed one', { audiences: ['gatehouse2'] }, {}],
    ['a token that the cluster refuses for its audience', { authenticated: false }, { aud: ['vault'] }],
  ])('%s, with the required audience', async (_case, change, claims) => {
    cluster.answer = { ...accepted, ...change }
    const outcome = await begin(await mechanism(), token(3600, claims))
    expect(outcome).toMatchObject({
      kind: 'rejected',
      headers: {
        'www-authenticate': expect.stringContaining(
          'error_description="The token is for another audience; wanted: gatehouse"',
        ),
      },
    })
  })

  test('a refusal names realm and scope', async () => {
    const outcome = await begin(await mechanism({ realm: 'here', scope: 'scim' }), 'x')
    expect(outcome).toMatchObject({
      headers: { 'www-authenticate': expect.stringMatching(/^Bearer realm="here", scope="scim", error=/) },
    })
  })

  test('a refusal is not remembered', async () => {
    const on = await mechanism()
    const same = token()
    cluster.answer = { ...accepted, authenticated: false }
    expect((await begin(on, same)).kind).toBe('rejected')
    cluster.answer = accepted
    expect((await begin(on, same)).kind).toBe('authenticated')
  })

  test('an expired token or a text that is not a JWT, without a call to the cluster', async () => {
    const on = await mechanism()
    for (const text of [token(-1), 'opaque', 'a.b.c', `${'a'.repeat(20_000)}`]) {
      expect((await begin(on, text)).kind).toBe('rejected')
    }
    expect((await begin(on)).kind).toBe('rejected')
    expect(cluster.calls).toEqual([])
  })
})

test('a cluster that does not answer is 503, not a refusal, and is called again', async () => {
  const on = await mechanism()
  cluster.answer = new GatewayError('TARGET_UNREACHABLE', 'no answer', { retryAfter: 2 })
  await expect(begin(on, token())).rejects.toMatchObject({ status: 503, retryAfter: 2 })
  cluster.answer = accepted
  expect((await begin(on, token())).kind).toBe('authenticated')
})

test('the number of concurrent reviews is bounded', async () => {
  const on = await mechanism()
  cluster.gate = new Promise(() => {})
  for (let i = 0; i < 100; i++) void begin(on, token(1000 + i))
  await expect(begin(on, token(10))).rejects.toMatchObject({ status: 503, retryAfter: 1 })
})

describe('parameters', () => {
  const problems = (params: ParamValues) => {
    const issues = noIssues()
    const context = fakeParseContext()
    serviceAccount.prepare(fakeParams(params), fakeParams({}), issues, context)
    return { texts: issueTexts(issues.list), references: context.references }
  }

  test('of the tutorial load, with a warning about the audience', () => {
    const { texts, references } = problems(tutorial)
    expect(texts).toEqual([
      'warning params.audience: without "audience", any token for the API server is accepted, not only those made for this service',
    ])
    expect(references).toEqual([{ kind: 'target', name: 'k8s', path: ['params', 'k8sTarget', 0] }])
  })

  test('need a target', () => {
    const { k8sTarget: _none, ...others } = tutorial
    expect(problems({ ...others, audience: 'a' }).texts).toEqual([
      'error params.k8sTarget: parameter "k8sTarget" is required',
    ])
  })
})

afterEach(() => {
  expect(cluster.calls.every(({ token: sent }) => sent.split('.').length === 3)).toBe(true)
})
