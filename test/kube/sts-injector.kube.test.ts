import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import stsInjector from '#features/sts/injector/injector.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Pod } from '#protocols/admission/pod.ts'
import { webhookConfiguration } from '#protocols/admission/webhook-configuration.ts'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import type { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { awsEndpoint, claudeEndpoint, roleArn } from '#testing/sts/injector-fixture.ts'
import { isKept } from '#testing/sts/is-kept.ts'

const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
const suite = randomUUID().slice(0, 8)
const aws = `aws-${suite}`
const claude = `claude-${suite}`
const labels = { [`tremolo.io/${aws}`]: 'true', [`tremolo.io/${claude}`]: 'enabled' }
const annotations = { [`tremolo.io/${aws}`]: roleArn }
const tls = renewWebhookTls(undefined, ['127.0.0.1'], new Date())

/** A webhook on loopback; the given function answers reviews. */
async function serve(answer: (body: Buffer) => Promise<string>): Promise<{ server: Server; url: string }> {
  const server = createServer({ key: tls.server.privateKey, cert: tls.server.certificate }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      answer(Buffer.concat(chunks)).then(
        (text) => response.writeHead(200, { 'content-type': 'application/json' }).end(text),
        () => response.writeHead(500).end(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return { server, url: `https://127.0.0.1:${port}/sts/inject` }
}

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

async function injector(reviews: unknown[]): Promise<(body: Buffer) => Promise<string>> {
  const stsPodEndpoints = [
    { ...awsEndpoint, label: aws },
    { ...claudeEndpoint, label: claude },
  ]
  const params = fakeParams({ tokenService: 'https://gatehouse.example.com' })
  const filter = await stsInjector
    .prepare(params, noIssues(), fakeParseContext())
    .create(fakeModuleHost({ stsPodEndpoints }))
  return async (body) => {
    reviews.push(JSON.parse(body.toString()))
    const request = fakeRequest({ method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const anyone = subject('uid=Anonymous,o=Tremolo')
    const exchange = { request, application: 'a', mount: '/sts/inject', pathInfo: '', subject: anyone }
    const response = await filter.handle(exchange, async () => ({ status: 404, headers: {} }))
    return String(response.body)
  }
}

/** The API server chooses a random suffix for the volume with its own token. */
const withoutChance = (spec: Pod['spec']): unknown =>
  JSON.parse(JSON.stringify(spec).replace(/"kube-api-access-[a-z0-9]+"/g, '"kube-api-access"'))

interface Created {
  readonly status: number
  readonly body: Pod & { readonly message?: string }
}

const containerContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
const podContext = { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } }
const plainSpec = {
  serviceAccountName: 'app',
  securityContext: podContext,
  initContainers: [{ name: 'prepare', image: 'example.test/app:1', securityContext: containerContext }],
  containers: [{ name: 'app', image: 'example.test/app:1', securityContext: containerContext }],
}

function create(cluster: KubeClient, namespace: string, metadata: object, spec: object, query = ''): Promise<Created> {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { generateName: 'app-', ...metadata }, spec }
  return cluster.call(`POST`, `/api/v1/namespaces/${namespace}/pods${query}`, pod)
}

onKubernetes('the injector as a webhook of a real API server', (cluster) => {
  const reviews: unknown[] = []
  const servers: Server[] = []
  const names: string[] = []
  let namespace = ''

  async function register(name: string, configuration: JsonObject): Promise<void> {
    names.push(name)
    await cluster.must('POST', configurations, configuration)
  }

  beforeAll(async () => {
    const { server, url } = await serve(await injector(reviews))
    servers.push(server)
    const name = `gatehouse-${suite}`
    const certificates = authoritiesOf(tls)
    await register(
      name,
      webhookConfiguration({ name, labels: [aws, claude], client: { url }, certificates, ownNamespace: 'gatehouse' }),
    )
    namespace = await cluster.namespace({ 'pod-security.kubernetes.io/enforce': 'restricted' })
    await cluster.serviceAccount({ namespace, name: 'app' })
    // A new configuration takes effect within a second or so.
    await vi.waitFor(
      async () => {
        await create(cluster, namespace, { labels, annotations }, plainSpec, '?dryRun=All')
        expect(reviews.length).toBeGreaterThan(0)
      },
      { timeout: 20_000, interval: 250 },
    )
  }, 60_000)

  afterAll(async () => {
    for (const name of names) await cluster.call('DELETE', `${configurations}/${name}`)
    for (const server of servers) await close(server)
  })

  test('a pod with the labels is admitted with sidecar, volumes and variables at the restricted level', async () => {
    const { status, body } = await create(cluster, namespace, { labels, annotations }, plainSpec)
    expect({ status, message: body.message }).toEqual({ status: 201, message: undefined })
    expect(body.spec.initContainers?.map(({ name }) => name)).toEqual(['sts-creds-sidecar', 'prepare'])
    expect(body.spec.initContainers?.[0]).toMatchObject({ restartPolicy: 'Always' })
    for (const container of [body.spec.initContainers?.[1], body.spec.containers?.[0]]) {
      expect(container?.env).toEqual([
        { name: 'AWS_WEB_IDENTITY_TOKEN_FILE', value: '/var/run/secrets/gatehouse/aws/token' },
        { name: 'AWS_ROLE_ARN', value: roleArn },
        { name: 'ANTHROPIC_IDENTITY_TOKEN_FILE', value: '/var/run/secrets/gatehouse/claude/token' },
      ])
    }
  })

  test('a pod that is too large is rejected with the reason', async () => {
    const many = Object.fromEntries(Array.from({ length: 5001 }, (_, i) => [`example.com/a${i}`, '']))
    const { status, body } = await create(cluster, namespace, { labels, annotations: many }, plainSpec)
    expect(status).toBe(422)
    expect(body.message).toContain('has an object of more than 5,000 members')
  })

  test('A4, A5: the sidecar has its own credential and none for the API server, with and without automount', async () => {
    for (const automountServiceAccountToken of [true, false]) {
      const spec = { ...plainSpec, automountServiceAccountToken }
      const { status, body } = await create(cluster, namespace, { labels, annotations }, spec)
      expect(status).toBe(201)
      expect(body.spec.initContainers?.[0]?.volumeMounts?.map(({ name }) => name)).toEqual([
        'sts-tokens',
        'sts-identity',
      ])
    }
  })

  test('a pod without the labels, or with them turned off, is not reviewed', async () => {
    const before = reviews.length
    const off = { [`tremolo.io/${aws}`]: 'false', [`tremolo.io/${claude}`]: 'disabled' }
    for (const metadata of [{}, { labels: { app: 'x' } }, { labels: off }]) {
      expect((await create(cluster, namespace, metadata, plainSpec)).status).toBe(201)
    }
    expect(reviews).toHaveLength(before)
  })

  test('A2, A12: a later injector makes the API server review again, and nothing is injected twice', async () => {
    const late = { name: 'late', image: 'example.test/late:1', securityContext: containerContext }
    const { server, url } = await serve(async (body) => {
      const { request } = JSON.parse(body.toString()) as { request: { uid: string; object: Pod } }
      const isThere = request.object.spec.containers?.some(({ name }) => name === 'late') === true
      const patch = Buffer.from(JSON.stringify([{ op: 'add', path: '/spec/containers/-', value: late }]))
      const change = isThere ? {} : { patchType: 'JSONPatch', patch: patch.toString('base64') }
      const response = { uid: request.uid, allowed: true, ...change }
      return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response })
    })
    servers.push(server)
    const name = `zz-late-${suite}`
    const certificates = authoritiesOf(tls)
    await register(
      name,
      webhookConfiguration({ name, labels: [claude], client: { url }, certificates, ownNamespace: 'x' }),
    )
    await vi.waitFor(
      async () => {
        const { status, body } = await create(cluster, namespace, { labels, annotations }, plainSpec)
        expect(status).toBe(201)
        expect(body.spec.containers?.map((one) => one.name)).toEqual(['app', 'late'])
        for (const container of body.spec.containers ?? []) expect(container.env).toHaveLength(3)
        expect(body.spec.initContainers?.map((one) => one.name)).toEqual(['sts-creds-sidecar', 'prepare'])
        const volumes = body.spec.volumes?.map((one) => one.name.replace(/^kube-api-access-.*/, 'api')) ?? []
        expect(volumes.toSorted()).toEqual(['api', 'sts-identity', 'sts-tokens'])
      },
      { timeout: 20_000, interval: 250 },
    )
    await cluster.must('DELETE', `${configurations}/${name}`)
  })

  test('random pods stay valid and keep all their parts, and injecting is idempotent (server-side dry run)', async () => {
    const mount = fc.constantFrom('/data', '/cache', '/var/run/secrets/gatehouse', '/tmp')
    const variable = fc.constantFrom('AWS_ROLE_ARN', 'AWS_WEB_IDENTITY_TOKEN_FILE', 'HOME')
    const container = fc.record({
      image: fc.constant('example.test/app:1'),
      securityContext: fc.constant(containerContext),
      env: fc.uniqueArray(fc.record({ name: variable, value: fc.string() }), { selector: ({ name }) => name }),
      volumeMounts: fc.uniqueArray(mount).map((paths) => paths.map((mountPath) => ({ name: 'data', mountPath }))),
    })
    const named = (prefix: string, max: number) =>
      fc
        .array(container, { minLength: prefix === 'c' ? 1 : 0, maxLength: max })
        .map((list) => list.map((one, position) => ({ name: `${prefix}${position}`, ...one })))
    const metadata = fc.record({
      labels: fc.constantFrom(labels, { [`tremolo.io/${aws}`]: 'x' }, { [`tremolo.io/${claude}`]: 'x' }),
      annotations: fc.record({
        [`tremolo.io/${aws}`]: fc.constantFrom(roleArn, '', 'a $(HOME) $$'),
        'tremolo.io/user': fc.constantFrom('1234', 'app', '0'),
        'tremolo.io/skip-containers': fc.constantFrom('c0', 'i0', ''),
        'tremolo.io/sidecar-memory-limit': fc.constantFrom('64Mi', 'much'),
      }),
    })
    const spec = fc.record({ containers: named('c', 3), initContainers: named('i', 2), fsGroup: fc.boolean() })
    const counts = new Set<number>()
    await fc.assert(
      fc.asyncProperty(metadata, spec, async (about, { fsGroup, ...lists }) => {
        const securityContext = { ...podContext, ...(fsGroup ? { fsGroup: 2000 } : {}) }
        const volumes = [{ name: 'data', emptyDir: {} }]
        const whole = { ...plainSpec, ...lists, securityContext, volumes }
        const admit = async (metadata: object, spec: object): Promise<Pod> => {
          const { status, body } = await create(cluster, namespace, metadata, spec, '?dryRun=All')
          expect({ status, message: body.message }).toEqual({ status: 201, message: undefined })
          return body
        }
        const { spec: injected } = await admit(about, whole)
        const { spec: plain } = await admit({ ...about, labels: {} }, whole)
        expect(isKept(withoutChance(plain), withoutChance(injected))).toBe(true)
        expect((await admit(about, injected)).spec).toEqual(injected)
        counts.add((injected.initContainers?.length ?? 0) - (plain.initContainers?.length ?? 0))
      }),
      { numRuns: 60 },
    )
    // Some got a sidecar, and those with a label but no value did not.
    expect([...counts].toSorted()).toEqual([0, 1])
  })

  describe('B2: while the webhook is down', () => {
    test('pods that request a token wait, and others do not', async () => {
      const [server] = servers
      if (server !== undefined) await close(server)
      const refused = await create(cluster, namespace, { labels, annotations }, plainSpec)
      expect(refused.status).toBe(500)
      expect(refused.body.message).toMatch(/failed calling webhook "sts\.gatehouse\.tremolo\.io"/)
      expect((await create(cluster, namespace, {}, plainSpec)).status).toBe(201)
    })
  })
})
