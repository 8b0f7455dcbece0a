import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'

const suite = randomUUID().slice(0, 8)
const name = `gatehouse-webhook-${suite}`
const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations'
const soon = { timeout: 30_000, interval: 250 }

interface Stored {
  readonly metadata: { readonly resourceVersion: string; readonly labels: object; readonly annotations: object }
  readonly webhooks?: readonly {
    readonly clientConfig: { readonly caBundle: string; readonly url: string }
    readonly failurePolicy: string
    readonly objectSelector: object
  }[]
}

interface CreatedPod {
  readonly spec?: { readonly initContainers?: readonly { readonly name: string }[] }
  readonly message?: string
}

onKubernetes('the injector with its own listener, certificate and webhook configuration', (cluster) => {
  let folder: string
  let gateway: GatewayProcess
  let port: number
  let namespace: string
  let token: string

  const configure = (label: string): void => {
    const { url, ca } = cluster.connection
    const spec = { className: 'targets.Kubernetes', params: { url, token, certificate: ca } }
    const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name: 'k8s' }, spec }
    const webhook = { listen: `127.0.0.1:${port}`, url: `https://127.0.0.1:${port}`, configuration: name }
    const endpoint = {
      name: 'aws',
      audience: 'sts.amazonaws.com',
      path: '/sts/aws',
      azRules: [{ scope: 'filter', constraint: '(namespace=shop)' }],
      issuer: { host: 'issuer.example.com' },
      injector: { label, token_environment_variable_name: 'AWS_WEB_IDENTITY_TOKEN_FILE' },
    }
    const sts = { injector: { tokenService: 'https://sts.example.com', webhook }, endpoints: [endpoint] }
    writeFileSync(join(folder, 'cluster.yaml'), JSON.stringify(target))
    writeFileSync(join(folder, 'values.yaml'), JSON.stringify({ sts }))
  }
  const start = (): Promise<GatewayProcess> =>
    startGatewayProcess({
      config: folder,
      dataFolder: join(folder, '.data'),
    })
  const stored = (): Promise<Stored> => cluster.must<Stored>('GET', `${configurations}/${name}`)
  const create = (labels: object) =>
    cluster.call<CreatedPod>('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      metadata: { generateName: 'app-', labels },
      spec: { serviceAccountName: 'app', containers: [{ name: 'app', image: 'example.test/app:1' }] },
    })
  const sidecars = (pod: CreatedPod) => pod.spec?.initContainers?.map((container) => container.name) ?? []
  const labelled = (label = suite): object => ({ [`tremolo.io/${label}`]: 'true' })
  const isInjected = async (label: string): Promise<void> => {
    expect(sidecars((await create(labelled(label))).body)).toEqual(['sts-creds-sidecar'])
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-webhook-'))
    port = await freePort()
    namespace = await cluster.namespace()
    const account = { namespace, name: 'gatehouse' }
    await cluster.serviceAccount(account)
    await cluster.serviceAccount({ namespace, name: 'app' })
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const rule = {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['mutatingwebhookconfigurations'],
      resourceNames: [name],
      verbs: ['get', 'update'],
    }
    await cluster.must('POST', `${rbac}/clusterroles`, { metadata: { name }, rules: [rule] })
    await cluster.must('POST', `${rbac}/clusterrolebindings`, {
      metadata: { name },
      subjects: [{ kind: 'ServiceAccount', ...account }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    })
    await cluster.must('POST', configurations, {
      metadata: {
        name,
        labels: { 'app.kubernetes.io/managed-by': 'Helm' },
        annotations: { 'meta.helm.sh/release-name': 'gatehouse' },
      },
    })
    token = await cluster.token(account, { seconds: 7200 })
    configure(suite)
    gateway = await start()
    await vi.waitFor(() => isInjected(suite), soon)
  }, 120_000)

  afterAll(async () => {
    await gateway?.stop()
    await cluster.call('DELETE', `${configurations}/${name}`)
    rmSync(folder, { recursive: true, force: true })
  })

  /** Calls like the API server, with the authority that it was given. */
  async function ask(path: string): Promise<number | undefined> {
    const [webhook] = (await stored()).webhooks ?? []
    const ca = Buffer.from(webhook?.clientConfig.caBundle ?? '', 'base64').toString()
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', ca, headers: { 'content-type': 'application/json' }, agent: false }
      const sent = request(`https://127.0.0.1:${port}${path}`, options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode))
      })
      sent.once('error', reject).end('{}')
    })
  }

  test('the object that Helm created is filled in, stays Helm’s, and is narrow', async () => {
    const { metadata, webhooks } = await stored()
    expect(metadata.labels).toEqual({ 'app.kubernetes.io/managed-by': 'Helm' })
    expect(metadata.annotations).toEqual({ 'meta.helm.sh/release-name': 'gatehouse' })
    expect(webhooks).toMatchObject([
      {
        failurePolicy: 'Fail',
        clientConfig: { url: `https://127.0.0.1:${port}/sts/inject` },
        objectSelector: { matchExpressions: [{ key: `tremolo.io/${suite}`, operator: 'Exists' }, {}] },
      },
    ])
  })

  test('a pod without the label is not reviewed', async () => {
    const { status, body } = await create({})
    expect([status, sidecars(body)]).toEqual([201, []])
  })

  test('only the injector is at its own listener, and only there', async () => {
    expect(await ask('/sts/inject')).toBe(400)
    expect(await ask('/sts/aws/issuer-docs')).toBe(404)
    expect((await fetch(`${gateway.url}/sts/inject`, { method: 'POST' })).status).toBe(404)
    expect((await fetch(`${gateway.url}/sts/aws/issuer-docs`)).status).toBe(200)
  })

  test('metrics show the certificate', async () => {
    const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    const [, ends] = /^gatehouse_sts_webhook_certificate_expiry_timestamp_seconds (\d+)/m.exec(text) ?? []
    expect(Number(ends) * 1000).toBeGreaterThan(Date.now() + 80 * 86_400_000)
    expect(text).toContain('gatehouse_sts_webhook_current 1')
  })

  test('while it is down labelled pods are rejected and others are not; then it continues with the same authority', async () => {
    const before = (await stored()).webhooks?.[0]?.clientConfig.caBundle
    await gateway.stop()
    expect((await create(labelled())).status).toBe(500)
    expect((await create({})).status).toBe(201)
    gateway = await start()
    await vi.waitFor(() => isInjected(suite), soon)
    expect((await stored()).webhooks?.[0]?.clientConfig.caBundle).toBe(before)
  }, 60_000)

  test('a new label of an endpoint reaches the API server without a restart', async () => {
    configure(`${suite}-b`)
    await vi.waitFor(() => isInjected(`${suite}-b`), soon)
    expect(sidecars((await create(labelled())).body)).toEqual([])
  }, 60_000)

  test('foreign changes are repaired when the gateway looks again', async () => {
    const { metadata, webhooks } = await stored()
    await cluster.must('PUT', `${configurations}/${name}`, {
      metadata: { ...metadata, name },
      webhooks: webhooks?.map((webhook) => ({ ...webhook, failurePolicy: 'Ignore' })),
    })
    configure(`${suite}-c`)
    await vi.waitFor(async () => expect((await stored()).webhooks?.[0]?.failurePolicy).toBe('Fail'), soon)
  }, 60_000)
})
