import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const suite = randomUUID().slice(0, 8)
const name = `gatehouse-annotated-${suite}`
const annotation = `tremolo.io/${suite}`
const role = (name: string): string => `arn:aws:iam::123456789012:role/${name}`

interface CreatedPod {
  readonly spec: {
    readonly containers: readonly { readonly env?: readonly { readonly name: string; readonly value?: string }[] }[]
  }
}

onKubernetes('a pod that is created right after its service account was annotated', (cluster) => {
  let gateway: StsGateway
  let namespace = ''

  beforeAll(async () => {
    namespace = await cluster.namespace()
    const port = await freePort()
    const webhook = { listen: `127.0.0.1:${port}`, url: `https://127.0.0.1:${port}`, configuration: name }
    const endpoint = {
      name: 'aws',
      audience: 'sts.amazonaws.com',
      path: '/sts/aws',
      preset: 'aws',
      azRules: [{ scope: 'filter', constraint: `(namespace=${namespace})` }],
      issuer: { host: 'issuer.example.com' },
      injector: { label: suite },
    }
    const sts = { injector: { tokenService: 'https://sts.example.com', webhook }, endpoints: [endpoint] }
    gateway = await startStsGateway(cluster, { sts, webhookConfiguration: name })
    await account('first', role('first'))
    await vi.waitFor(async () => expect(await roleOfPod('first')).toBe(role('first')), {
      timeout: 60_000,
      interval: 250,
    })
  }, 180_000)

  afterAll(async () => {
    await gateway?.stop()
    await cluster.call('DELETE', `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${name}`)
  }, 30_000)

  const accounts = () => `/api/v1/namespaces/${namespace}/serviceaccounts`
  const account = (name: string, value?: string): Promise<unknown> => {
    const annotations = value === undefined ? {} : { [annotation]: value }
    return cluster.must('POST', accounts(), { metadata: { name, annotations } })
  }
  const annotate = async (name: string, value: string | null): Promise<void> => {
    const change = { metadata: { annotations: { [annotation]: value } } }
    const { status } = await cluster.call(
      'PATCH',
      `${accounts()}/${name}`,
      change,
      undefined,
      'application/merge-patch+json',
    )
    expect(status).toBe(200)
  }
  const roleOfPod = async (serviceAccountName: string): Promise<string | undefined> => {
    const { spec } = await cluster.must<CreatedPod>('POST', `/api/v1/namespaces/${namespace}/pods`, {
      metadata: { generateName: 'app-', labels: { [annotation]: 'true' } },
      spec: { serviceAccountName, containers: [{ name: 'app', image: 'example.test/app:1' }] },
    })
    return spec.containers[0]?.env?.find((variable) => variable.name === 'AWS_ROLE_ARN')?.value
  }

  test('has the identity of the annotation, also if it changed, and none without it', {
    timeout: 120_000,
  }, async () => {
    for (const name of ['cart', 'basket', 'orders']) {
      await account(name)
      expect(await roleOfPod(name)).toBeUndefined()
      await annotate(name, role('one'))
      expect(await roleOfPod(name)).toBe(role('one'))
      await annotate(name, role('two'))
      const pods = await Promise.all(Array.from({ length: 10 }, () => roleOfPod(name)))
      expect(pods).toEqual(Array(10).fill(role('two')))
      await annotate(name, null)
      expect(await roleOfPod(name)).toBeUndefined()
    }
  })
})
