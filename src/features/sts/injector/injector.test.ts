import { jsonpatch } from 'json-p3'
import { describe, expect, test, vi } from 'vitest'
import type { StsHost } from '#features/sts/host.ts'
import type { PodAdmission } from '#features/sts/service/pod-admission.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import type { ClusterObjects, KubernetesCluster } from '#sdk/target/kubernetes-cluster.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { awsEndpoint, claudeEndpoint, podOf, roleArn } from '#testing/sts/injector-fixture.ts'
import stsInjector, { sidecarScript } from './injector.ts'

const tokenService = 'https://gatehouse.example.com'
const json = { 'content-type': 'application/json' }

interface Call {
  readonly body?: string | Buffer
  readonly params?: Record<string, string>
  readonly method?: string
  readonly pathInfo?: string
  readonly headers?: Record<string, string>
}

async function filterFor(params: Record<string, string>, host: Partial<StsHost> = {}) {
  const issues = noIssues()
  const prepared = stsInjector.prepare(fakeParams({ tokenService, ...params }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  return prepared.create({ ...fakeModuleHost({ stsPodEndpoints: [awsEndpoint, claudeEndpoint] }), ...host })
}

async function call({ body = '', params = {}, method = 'POST', pathInfo = '', headers = json }: Call) {
  const filter = await filterFor(params)
  return filter.handle(
    {
      request: fakeRequest({ method, headers, body }),
      application: 'a',
      mount: '/sts/inject',
      pathInfo,
      subject: subject('uid=Anonymous,o=Tremolo'),
    },
    async () => {
      throw new Error('there is nothing behind this filter')
    },
  )
}

const podKind = { group: '', version: 'v1', kind: 'Pod' }
const review = (object: unknown, request: Record<string, unknown> = {}): string =>
  JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u-1', operation: 'CREATE', kind: podKind, namespace: 'shop', object, ...request },
  })

interface Answer {
  readonly uid: string
  readonly allowed: boolean
  readonly patch?: string
  readonly patchType?: string
  readonly warnings?: readonly string[]
  readonly status?: { readonly code: number; readonly message: string }
}

async function answer(body: string, params: Record<string, string> = {}): Promise<Answer> {
  const response = await call({ body, params })
  expect(response.status).toBe(200)
  const read = JSON.parse(String(response.body)) as { apiVersion: string; kind: string; response: Answer }
  expect(read).toMatchObject({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' })
  return read.response
}

describe('an admission review', () => {
  test('of a pod that requests a token gets the patch', async () => {
    const pod = podOf()
    const { uid, allowed, patch = '', patchType, warnings } = await answer(review(pod))
    expect({ uid, allowed, patchType, warnings }).toEqual({
      uid: 'u-1',
      allowed: true,
      patchType: 'JSONPatch',
      warnings: undefined,
    })
    const operations = JSON.parse(Buffer.from(patch, 'base64').toString()) as Parameters<typeof jsonpatch.apply>[0]
    const patched = jsonpatch.apply(operations, JSON.parse(JSON.stringify(pod)))
    expect(patched).toMatchObject({ spec: { initContainers: [{ name: 'sts-creds-sidecar' }] } })
    expect(JSON.stringify(patched)).toContain('token-exchange')
    expect((await answer(review(patched))).patch).toBeUndefined()
  })

  test('gets the same answer on a dry run', async () => {
    expect(await answer(review(podOf(), { dryRun: true }))).toEqual(await answer(review(podOf())))
  })

  test.each([
    ['of a pod without the label', review(podOf({ labels: {} }))],
    ['of an update', review(podOf(), { operation: 'UPDATE' })],
    ['of a subresource', review(podOf(), { subResource: 'ephemeralcontainers' })],
    ['of a deletion', review(null, { operation: 'DELETE' })],
  ])('%s is allowed and gets nothing else', async (_, body) => {
    expect(await answer(body)).toEqual({ uid: 'u-1', allowed: true })
  })

  test('of another kind is allowed with a warning', async () => {
    const kind = { group: 'apps', version: 'v1', kind: 'Deployment' }
    expect(await answer(review({}, { kind }))).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining('Deployment')],
    })
  })

  test('A13, A14: faults are warnings', async () => {
    const pod = podOf({
      labels: { 'tremolo.io/aws-role': 'x', 'tremolo.io/claude': 'x' },
      annotations: { 'tremolo.io/user': 'app' },
    })
    const { allowed, warnings = [], patch } = await answer(review(pod))
    expect(allowed).toBe(true)
    expect(patch).toBeDefined()
    expect(warnings).toEqual([
      expect.stringContaining('needs an annotation'),
      expect.stringContaining('tremolo.io/user'),
    ])
  })

  test('faults are refusals if configured so', async () => {
    const pod = podOf({ annotations: { 'tremolo.io/user': 'app' } })
    const refused = await answer(review(pod), { refuseFaultyPods: 'true' })
    expect(refused).toEqual({
      uid: 'u-1',
      allowed: false,
      status: { code: 422, message: expect.stringContaining('tremolo.io/user') },
    })
    expect((await answer(review(podOf()), { refuseFaultyPods: 'true' })).allowed).toBe(true)
  })

  test('warnings are short, plain and few', async () => {
    const containers = Array.from({ length: 40 }, (_, position) => ({
      name: `c${position}é\n${'x'.repeat(300)}`,
      env: [{ name: 'AWS_ROLE_ARN', value: 'own' }],
    }))
    const { warnings = [] } = await answer(review(podOf({ spec: { containers } })))
    expect(warnings).toHaveLength(16)
    for (const text of warnings) expect(text).toMatch(/^[\x20-\x7e]{1,240}$/)
  })

  test.each([
    ['no object', null],
    ['a text', 'pod'],
    ['no spec', { metadata: {} }],
    ['containers that are not a list', { metadata: {}, spec: { containers: {} } }],
    ['a container without name', { metadata: {}, spec: { containers: [{}] } }],
    ['labels that are not texts', { metadata: { labels: { a: 1 } }, spec: {} }],
  ])('of a pod with %s is rejected with a status', async (_, pod) => {
    expect(await answer(review(pod))).toEqual({
      uid: 'u-1',
      allowed: false,
      status: { code: 422, message: expect.stringContaining('cannot read the pod') },
    })
  })
})

describe('an invalid admission review', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  test.each([
    ['nothing', '', 'INVALID_JSON'],
    ['no JSON', '{', 'INVALID_JSON'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'INVALID_JSON'],
    ['a number', '1', 'BAD_REQUEST'],
    ['another version', review({}).replace('/v1"', '/v1beta1"'), 'BAD_REQUEST'],
    ['no request', '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', 'BAD_REQUEST'],
    ['no uid', review({}, { uid: '' }), 'BAD_REQUEST'],
    ['a huge uid', review({}, { uid: 'x'.repeat(1000) }), 'BAD_REQUEST'],
    ['a prototype', review({}).replace('"object":{}', '"object":{"__proto__":{}}'), 'BAD_REQUEST'],
    ['a deep one', review({}).replace('"object":{}', `"object":${deep}`), 'INVALID_JSON'],
  ])('%s is rejected by a typed answer', async (_, body, code) => {
    await expect(call({ body })).rejects.toMatchObject({ code })
  })

  test.each([
    [
      'more members than are read',
      '{"a":1}',
      JSON.stringify(Object.fromEntries(Array.from({ length: 5001 }, (_, i) => [`k${i}`, 1]))),
      '5,000 members',
    ],
    ['a prototype', '{"a":1}', '{"__proto__":1}', 'not an AdmissionReview'],
  ])(
    'a review of an API server with %s is rejected with a reason that the API server shows',
    async (_, from, to, reason) => {
      const kind = { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' }
      const { request } = JSON.parse(review({ a: 1 })) as { request: object }
      const body = JSON.stringify({ ...kind, request }).replace(from, to)
      expect(JSON.parse(String((await call({ body })).body))).toMatchObject({
        response: { uid: 'u-1', allowed: false, status: { code: 422, message: expect.stringContaining(reason) } },
      })
    },
  )

  test('another method, media type or path', async () => {
    await expect(call({ method: 'GET' })).rejects.toMatchObject({
      code: 'METHOD_NOT_ALLOWED',
      headers: { allow: 'POST' },
    })
    await expect(call({ headers: {} })).rejects.toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' })
    await expect(call({ pathInfo: '/x' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('A18: the body is read with a limit of 3 MiB', async () => {
    const prepared = stsInjector.prepare(fakeParams({ tokenService }), noIssues(), fakeParseContext())
    const filter = await prepared.create(fakeModuleHost())
    const limits: (number | undefined)[] = []
    const request = {
      ...fakeRequest({ method: 'POST', headers: json }),
      body: async (limit?: number) => {
        limits.push(limit)
        return Buffer.from(review({}, { operation: 'UPDATE' }))
      },
    }
    const exchange = {
      request,
      application: 'a',
      mount: '/',
      pathInfo: '',
      subject: subject('uid=Anonymous,o=Tremolo'),
    }
    await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
    expect(limits).toEqual([3 * 1024 * 1024])
  })
})

describe('parameters', () => {
  const problems = (params: Record<string, string>, files: Record<string, string> = {}): string[] => {
    const issues = noIssues()
    const context = { ...fakeParseContext(), readFile: (file: string) => files[file] ?? '' }
    stsInjector.prepare(fakeParams(params), issues, context)
    return issueTexts(issues.list)
  }
  test.each([
    [{}, 'tokenService'],
    [{ tokenService: 'http://gatehouse.example.com' }, 'https'],
    [{ tokenService: 'https://u:p@gatehouse.example.com' }, 'no user'],
    [{ tokenService, memoryLimit: 'much' }, 'memoryLimit'],
    [{ tokenService, credentialSeconds: '599' }, 'credentialSeconds'],
    [{ tokenService, trustedCertificates: 'absent.pem' }, 'holds no certificate'],
    [{ tokenService, trustedCertificates: 'key.pem' }, 'private key'],
  ])('%j is rejected', (params, text) => {
    const files = { '/configuration/key.pem': '-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----' }
    expect(problems(params, files)).toEqual([expect.stringContaining(text)])
  })

  test('the certificate file is in the configuration folder', () => {
    const files = { '/configuration/tls/ca.pem': '-----BEGIN CERTIFICATE-----' }
    expect(problems({ tokenService, trustedCertificates: 'tls/ca.pem' }, files)).toEqual([])
  })

  test('an address on this machine needs no TLS', () => {
    expect(problems({ tokenService: 'http://127.0.0.1:8080/' })).toEqual([])
  })
})

test('messages about a pod are short, however many faults it has', async () => {
  const env = [{ name: 'AWS_ROLE_ARN', value: 'own' }]
  const containers = Array.from({ length: 900 }, (_, i) => ({ name: `c${i}${'x'.repeat(2000)}`, env }))
  const refused = await answer(review(podOf({ spec: { containers } })), { refuseFaultyPods: 'true' })
  expect(refused.allowed).toBe(false)
  expect(refused.status?.message).toMatch(/; and 884 more$/)
  expect(refused.status?.message.length).toBeLessThan(8_000)
})

describe('with a cluster', () => {
  type Get = ClusterObjects['get']
  const stored = (annotations: Record<string, string>): ClusterObject => ({
    metadata: { name: 'cart', namespace: 'shop', uid: 'u', resourceVersion: '1' },
    content: { metadata: { annotations } },
  })
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'cart-5d9', uid: 'rs-1', controller: true }
  const bare = () => {
    const pod = podOf({ labels: { 'tremolo.io/aws-role': 'true' }, spec: { serviceAccountName: 'cart' } })
    pod.metadata.ownerReferences = [owner]
    return pod
  }

  async function start(get: Get, params: Record<string, string> = {}, create?: ClusterObjects['create']) {
    const events: Record<string, unknown>[] = []
    const admissions: PodAdmission[] = []
    const time = { millis: Date.now() }
    const read: string[] = []
    const objects: Partial<ClusterObjects> = {
      get: (resource, name) => {
        read.push(`${resource.plural} ${resource.namespace}/${name}`)
        return get(resource, name)
      },
      create:
        create ??
        (async (_, event) => {
          events.push({ ...event })
          return stored({})
        }),
    }
    const target = { objects } as unknown as KubernetesCluster
    const filter = await filterFor(
      { cluster: 'k8s', ...params },
      {
        targets: { get: () => target },
        clock: () => new Date(time.millis),
        recordAdmission: async (admission) => void admissions.push(admission),
      },
    )
    const send = async (pod: unknown, request: Record<string, unknown> = {}): Promise<Answer> => {
      const exchange = {
        request: fakeRequest({ method: 'POST', headers: json, body: review(pod, request) }),
        application: 'a',
        mount: '/sts/inject',
        pathInfo: '',
        subject: subject('uid=Anonymous,o=Tremolo'),
      }
      const { body } = await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
      return (JSON.parse(String(body)) as { response: Answer }).response
    }
    return { send, events, admissions, time, read }
  }
  const roleIn = ({ patch = '' }: Answer): boolean => Buffer.from(patch, 'base64').toString().includes(roleArn)

  test('the annotation of the ServiceAccount counts as it is when the pod is reviewed', async () => {
    let annotations: Record<string, string> = {}
    const { send, read, admissions } = await start(async () => stored(annotations))
    expect((await send(bare())).warnings?.[0]).toContain('needs an annotation')
    annotations = { 'tremolo.io/aws-role': roleArn }
    expect(roleIn(await send(bare()))).toBe(true)
    annotations = {}
    expect(roleIn(await send(bare()))).toBe(false)
    expect(read).toEqual(Array(3).fill('serviceaccounts shop/cart'))
    admissions.shift()
    expect(admissions[0]).toEqual({
      requestId: expect.any(String),
      namespace: 'shop',
      serviceAccount: 'cart',
      pod: 'app-',
      owner: 'ReplicaSet/cart-5d9',
      decision: 'injected',
      endpoints: ['aws'],
      reasons: [],
    })
  })

  test('pods that are reviewed during a read share one read that begins after it', async () => {
    const answers: ((role: string) => void)[] = []
    const { send, read } = await start(
      () => new Promise((resolve) => answers.push((role) => resolve(stored({ 'tremolo.io/aws-role': role })))),
    )
    const first = send(bare())
    await vi.waitFor(() => expect(read).toHaveLength(1))
    // Annotated while the first read is on its way.
    const others = [send(bare()), send(bare()), send(bare())]
    answers[0]?.('arn:aws:iam::123456789012:role/old')
    expect(roleIn(await first)).toBe(false)
    await vi.waitFor(() => expect(read).toHaveLength(2))
    answers[1]?.(roleArn)
    expect((await Promise.all(others)).map(roleIn)).toEqual([true, true, true])
    expect(read).toHaveLength(2)
  })

  test('a misspelled annotation of the ServiceAccount gets a warning, as on the pod', async () => {
    const { send } = await start(async () => stored({ 'tremolo.io/aws-role.valeu': roleArn }))
    const { warnings } = await send(bare())
    expect(warnings).toContainEqual(
      'gatehouse: the annotation "tremolo.io/aws-role.valeu" of the ServiceAccount shop/cart names no setting (did you mean "tremolo.io/aws-role.value"?)',
    )
  })

  test('a pod with complete annotations costs no call', async () => {
    const { send, read } = await start(async () => undefined)
    expect(roleIn(await send(podOf()))).toBe(true)
    expect(read).toEqual([])
  })

  test.each([
    ['admit', true, 'admitted'],
    ['refuse', false, 'refused'],
  ])('while the API server does not answer, the policy %s decides', async (whenNotInjectable, allowed, decision) => {
    const away: Get = async () => {
      throw new GatewayError('TARGET_UNREACHABLE', 'no route')
    }
    const { send, events, admissions, read } = await start(away, { whenNotInjectable })
    const given = await send(bare())
    expect(given.allowed).toBe(allowed)
    const text = allowed ? given.warnings?.[0] : given.status?.message
    expect(text).toContain('the API server did not answer')
    expect(given.patch).toBeUndefined()
    expect(admissions).toMatchObject([{ decision, endpoints: [], reasons: [expect.stringContaining('shop/cart')] }])
    expect(events).toMatchObject([
      {
        reason: allowed ? 'TokensNotInjected' : 'PodRefused',
        regarding: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'cart-5d9', namespace: 'shop', uid: 'rs-1' },
        note: expect.stringContaining('needs an annotation'),
      },
    ])
    // The API server is not called for some seconds, and the owner is not notified for some minutes.
    await send(bare())
    expect([read.length, events.length, admissions.length]).toEqual([1, 1, 2])
  })

  test('an account is remembered for ten minutes while the API server does not answer', async () => {
    let away = false
    const { send, time } = await start(async () => {
      if (away) throw new GatewayError('TARGET_UNREACHABLE', 'no route')
      return stored({ 'tremolo.io/aws-role': roleArn })
    })
    await send(bare())
    away = true
    time.millis += 300_000
    const late = await send(bare())
    expect([roleIn(late), late.warnings]).toEqual([true, [expect.stringContaining('do not count')]])
    time.millis += 301_000
    expect(roleIn(await send(bare()))).toBe(false)
  })

  test('the answer waits at most two seconds for a slow account, and never for an event', async () => {
    const never = (): Promise<never> => new Promise(() => {})
    const { send } = await start(never, {}, never)
    const began = performance.now()
    const { warnings } = await send(bare())
    expect(warnings?.[0]).toContain('did not answer')
    expect(performance.now() - began).toBeLessThan(4500)
  })

  test('invalid names are not looked up, and concurrent lookups are limited', async () => {
    const { send, read } = await start(() => new Promise(() => {}))
    const named = (name: string) =>
      podOf({ labels: { 'tremolo.io/aws-role': 'true' }, spec: { serviceAccountName: name } })
    const { warnings } = await send(named('../secrets/x'))
    expect([read, warnings?.[0]]).toEqual([[], expect.stringContaining('no valid name')])
    await Promise.all(Array.from({ length: 100 }, (_, i) => send(named(`cart-${i}`))))
    expect(read).toHaveLength(64)
  })

  test('an event that cannot be created changes nothing', async () => {
    const { send } = await start(
      async () => undefined,
      {},
      async () => {
        throw new GatewayError('TARGET_FAILED', 'forbidden')
      },
    )
    expect((await send(bare())).allowed).toBe(true)
  })

  test('a dry run leaves no event and no audit entry', async () => {
    const { send, events, admissions } = await start(async () => undefined)
    expect((await send(bare(), { dryRun: true })).warnings).toHaveLength(1)
    await send(podOf(), { dryRun: true })
    expect([events, admissions]).toEqual([[], []])
  })

  test('a pod without a controller gets the warning only, and one that requests nothing is not recorded', async () => {
    const { send, events, admissions } = await start(async () => undefined)
    await send(podOf({ labels: { 'tremolo.io/aws-role': 'true' } }))
    await send(podOf({ labels: {} }))
    expect([events.length, admissions.length]).toEqual([0, 1])
  })

  test('events are bounded for every caller', async () => {
    const { send, events } = await start(async () => undefined)
    for (let i = 0; i < 60; i++) {
      const pod = bare()
      pod.metadata.ownerReferences = [{ ...owner, uid: `rs-${i}` }]
      await send(pod)
    }
    expect(events.length).toBeGreaterThan(20)
    expect(events.length).toBeLessThanOrEqual(31)
  })
})

test('the injected script has no comments and fits into a pod many times', () => {
  expect(sidecarScript).not.toMatch(/^\s*#/m)
  expect(sidecarScript.length).toBeLessThan(10_240)
})
