import { randomUUID } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, inject, test, vi } from 'vitest'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { defineAll } from '#testing/kubernetes/custom-resources.ts'
import { chartFolder, Helm } from '#testing/kubernetes/helm-chart.ts'
import type { AccountName, KubeClient } from '#testing/kubernetes/kube-client.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { podWithAccount } from '#testing/sts/sts-gateway.ts'

const program = inject('helm')
const helm = new Helm(program ?? '')
const suite = randomUUID().slice(0, 8)
const running: GatewayProcess[] = []
const releases: (() => Promise<unknown>)[] = []

interface ConfigMap {
  readonly data: Readonly<Record<string, string>>
}

/** Installs the chart in its own namespace and returns a kubeconfig of its account. */
async function install(cluster: KubeClient, files: readonly string[], ...args: string[]) {
  const namespace = await cluster.namespace({ 'pod-security.kubernetes.io/enforce': 'restricted' })
  const place = ['gatehouse', '--namespace', namespace, '--kubeconfig', cluster.connection.kubeconfig]
  const values = files.flatMap((file) => ['--values', `${chartFolder}/${file}`])
  await helm.run('install', ...place, chartFolder, '--skip-crds', ...values, ...args)
  releases.push(() => helm.run('uninstall', ...place))
  const kubeconfig = await kubeconfigOf(cluster, { namespace, name: 'gatehouse' })
  const { data } = await cluster.must<ConfigMap>('GET', `/api/v1/namespaces/${namespace}/configmaps/gatehouse-config`)
  return { namespace, kubeconfig, data }
}

async function kubeconfigOf(cluster: KubeClient, account: AccountName): Promise<string> {
  const { url, ca } = cluster.connection
  const server = { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'own',
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
    clusters: [{ name: 'own', cluster: server }],
    users: [{ name: 'own', user: { token: await cluster.token(account) } }],
  }
  const file = join(mkdtempSync(join(tmpdir(), 'gatehouse-chart-')), 'kubeconfig')
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  return file
}

async function start(...args: Parameters<typeof startGatewayProcess>): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess(...args)
  running.push(gateway)
  return gateway
}

async function haveNamespace(cluster: KubeClient, name: string): Promise<void> {
  expect([201, 409]).toContain((await cluster.call('POST', '/api/v1/namespaces', { metadata: { name } })).status)
}

onKubernetes('a gateway with the rights that the chart grants', (cluster) => {
  afterEach(async () => {
    for (const gateway of running.splice(0)) await gateway.stop()
    for (const uninstall of releases.splice(0)) await uninstall()
  }, 60_000)

  describe.skipIf(program === undefined)('needs no others', () => {
    test('the token service alone: reviews, publishes, and writes its webhook', { timeout: 120_000 }, async () => {
      const shop = await cluster.namespace()
      const account = { namespace: shop, name: 'cart' }
      await cluster.serviceAccount(account)
      await haveNamespace(cluster, 'issuer-site')
      await defineAll(cluster)
      const { namespace, kubeconfig, data } = await install(
        cluster,
        ['values-sts.yaml', 'ci/sts-values.yaml'],
        ...['--set', `webhook.port=${await freePort()}`, '--set', 'listenAddress=127.0.0.1'],
        // Its own labels: no server answers at the Service, so pods of other tests with these labels would be rejected.
        ...['--set', `sts.endpoints[0].injector.label=aws-${suite}`],
        ...['--set', `sts.endpoints[1].injector.label=claude-${suite}`],
        ...['--set', `sts.endpoints[1].azRules[0].constraint=(namespace=${shop})`],
        ...['--set', `sts.publish[0].name=documents-${suite}`],
      )
      const config = mkdtempSync(join(tmpdir(), 'gatehouse-chart-'))
      for (const [name, text] of Object.entries(data)) writeFileSync(join(config, name), text)
      const target = { className: 'targets.Kubernetes', params: { kubeconfig } }
      const written = {
        apiVersion: 'openunison.tremolo.io/v1',
        kind: 'Target',
        metadata: { name: 'k8s' },
        spec: target,
      }
      expect(data['cluster.yaml']).toContain('inCluster')
      writeFileSync(join(config, 'cluster.yaml'), JSON.stringify(written))
      const gateway = await start({ config })

      const pod = await cluster.pod(account, 'cart-1')
      const token = await cluster.token(account, { audiences: ['gatehouse-sts'], boundPod: pod })
      const body = new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: token,
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      })
      const headers = { accept: 'application/jwt' }
      const answer = await fetch(`${gateway.url}/sts/claude/token`, { method: 'POST', headers, body })
      const text = await answer.text()
      expect({ status: answer.status, text: answer.status === 200 ? '' : text }).toEqual({ status: 200, text: '' })
      expect(decodeJwt(text)).toMatchObject({
        iss: 'https://claude-issuer.example.com',
        namespace: shop,
        saname: 'cart',
      })

      const configuration = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${namespace}-gatehouse`
      await vi.waitFor(
        async () => {
          const { webhooks } = await cluster.must<{ webhooks?: unknown[] }>('GET', configuration)
          const service = { namespace, name: 'gatehouse-webhook', port: 443, path: '/sts/inject' }
          expect(webhooks).toMatchObject([{ failurePolicy: 'Fail', clientConfig: { service } }])
          const documents = `/api/v1/namespaces/issuer-site/configmaps/documents-${suite}`
          const published = await cluster.must<ConfigMap>('GET', documents)
          expect(Object.keys(published.data).sort()).toEqual(['certs', 'openid-configuration'])
        },
        { timeout: 30_000, interval: 200 },
      )
      await grantedByTeam(gateway)
      expect(gateway.output()).not.toMatch(/forbidden/i)
    })

    /** A namespace within the limits of the values grants a token, which is in its status and an event. */
    async function grantedByTeam(gateway: GatewayProcess): Promise<void> {
      const agent = { namespace: `team-${suite}`, name: 'agent-1' }
      await haveNamespace(cluster, agent.namespace)
      const { tokenFor } = await podWithAccount(cluster, agent, 'agent-1')
      const token = await tokenFor('gatehouse-sts')
      const grants = `/apis/gatehouse.dev/v1/namespaces/${agent.namespace}/tokengrants`
      await cluster.must('POST', grants, {
        apiVersion: 'gatehouse.dev/v1',
        kind: 'TokenGrant',
        metadata: { name: 'agents' },
        spec: { endpoint: 'claude', serviceAccounts: [agent.name] },
      })
      const waiting = { timeout: 60_000, interval: 200 }
      await vi.waitFor(async () => {
        const address = `${gateway.url}/sts/claude/token/user`
        const { status } = await fetch(address, { headers: { authorization: `Bearer ${token}` } })
        expect(status).toBe(200)
        const { status: written } = await cluster.must<{ status?: unknown }>('GET', `${grants}/agents`)
        expect(written).toMatchObject({ conditions: [{ type: 'Accepted', status: 'True' }] })
        const events = `/apis/events.k8s.io/v1/namespaces/${agent.namespace}/events`
        expect(await cluster.must('GET', events)).toMatchObject({ items: [{ reason: 'GrantAccepted' }] })
      }, waiting)
      const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      const [, age] = /^gatehouse_sts_grants_age_seconds\{cluster="k8s"\} (\S+)$/m.exec(metrics) ?? []
      expect(Number(age)).toBeLessThan(120)
    }

    test('objects: reads them, and the named Secrets, and writes their status', {
      timeout: 120_000,
    }, async () => {
      await defineAll(cluster)
      const { namespace, kubeconfig } = await install(cluster, ['ci/objects-values.yaml'])
      const named = (name: string, value: string) => ({ metadata: { name }, stringData: { password: value } })
      for (const name of ['people-db', 'another']) {
        await cluster.must('POST', `/api/v1/namespaces/${namespace}/secrets`, named(name, 'a secret'))
      }
      const objects = `/apis/openunison.tremolo.io/v1/namespaces/${namespace}/targets`
      const target = (name: string, secretName: string) => ({
        apiVersion: 'openunison.tremolo.io/v1',
        kind: 'Target',
        metadata: { name },
        spec: {
          className: 'targets.Kubernetes',
          params: [{ name: 'url', value: 'https://127.0.0.1:1' }],
          secretParams: [{ name: 'token', secretName, secretKey: 'password' }],
        },
      })
      await cluster.must('POST', objects, target('people', 'people-db'))
      const config = `kubernetes:${namespace}/gatehouse-config`
      const gateway = await start({ config, args: ['--kubeconfig', kubeconfig] })
      interface Told {
        readonly status?: { readonly conditions?: readonly { type: string; status: string; message: string }[] }
      }
      const ready = async (name: string) =>
        (await cluster.must<Told>('GET', `${objects}/${name}`)).status?.conditions?.find(({ type }) => type === 'Ready')
      const waiting = { timeout: 30_000, interval: 200 }
      await vi.waitFor(async () => expect(await ready('people')).toMatchObject({ status: 'True' }), waiting)

      await cluster.must('POST', objects, target('hidden', 'another'))
      await vi.waitFor(async () => {
        const told = await ready('hidden')
        expect(told).toMatchObject({ status: 'False', message: expect.stringContaining('no such secret') })
      }, waiting)
      expect(gateway.output()).not.toContain('a secret')
    })
  })
})
