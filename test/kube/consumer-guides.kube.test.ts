import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { amazonSts, entra, googleSts, type StandIn, startStandIn } from '#testing/sts/consumer-stand-ins.ts'
import { type OpenBao, startOpenBao } from '#testing/sts/openbao.ts'
import type { StsGateway } from '#testing/sts/sts-gateway.ts'
import { blockOf, commandsOf, type GuideCluster, startGuideCluster } from './consumer-guide.ts'

const run = promisify(execFile)
const hasOpenBao = inject('openbao') !== undefined

interface TrustPolicy {
  readonly Statement: readonly [object]
}

/** The value of `--name` in a command of a guide. */
const argument = (commands: string, name: string): string | undefined =>
  new RegExp(`--${name} (\\S+)`).exec(commands)?.[1]

/**
 * Each guide as written: its endpoint, ServiceAccount and pod, admitted by a real API server, the admitted sidecar, and
 * the consumer's SDK with only the injected settings. Only the addresses are those of this machine.
 */
describe.skipIf(inject('kube') === undefined)('the guides of consumers', { timeout: 240_000 }, () => {
  let cluster: GuideCluster
  let gateway: StsGateway
  let amazon: StandIn
  let microsoft: StandIn
  let google: StandIn
  let bao: OpenBao | undefined

  beforeAll(async () => {
    cluster = await startGuideCluster()
    amazon = await startStandIn(amazonSts, () => cluster.setUp('aws'))
    microsoft = await startStandIn(entra, () => cluster.setUp('azure'), { tls: true })
    google = await startStandIn(googleSts, () => cluster.setUp('gcp'))
    if (hasOpenBao) bao = await startOpenBao()
    const authority = Buffer.from(testServerCertificate).toString('base64')
    gateway = await cluster.start({
      aws: { environment: { AWS_ENDPOINT_URL_STS: amazon.url } },
      azure: { settings: { 'authority-host': `${microsoft.url}/` } },
      gcp: { settings: { 'token-url': `${google.url}/v1/token` } },
      'another-cluster': {
        localIssuer: true,
        settings: { server: cluster.server.url, 'certificate-authority': authority },
      },
      ...(bao === undefined ? {} : { openbao: { localIssuer: true, settings: { address: bao.address } } }),
    })
  }, 240_000)

  afterAll(async () => {
    for (const standIn of [amazon, microsoft, google]) await standIn?.close()
    await bao?.stop()
    await cluster?.stop()
  }, 60_000)

  // First, since its role is no error if the gateway remembers the account of another guide.
  test.skipIf(!hasOpenBao)(
    'OpenBao: the workload logs in with its role and reads its secret, and nothing else',
    async () => {
      if (bao === undefined) throw new Error('there is no OpenBao')
      const { node, variables } = await cluster.workload('openbao')
      expect(Object.keys(variables).sort()).toEqual(['VAULT_ADDR', 'VAULT_AUTH_PATH', 'VAULT_JWT_FILE', 'VAULT_ROLE'])
      await bao.call('POST', 'sys/mounts/secret', { type: 'kv', options: { version: '2' } })
      await bao.call('POST', 'secret/data/cart', { data: { color: 'green' } })
      await bao.call('POST', 'secret/data/other', { data: { color: 'red' } })
      for (const { path, body, method } of callsOf(commandsOf('openbao'))) {
        const local =
          path !== 'auth/jwt/config'
            ? {}
            : { oidc_discovery_ca_pem: bao.ca, oidc_discovery_url: `${cluster.site.url}/bao` }
        await bao.call(method, path, { ...body, ...local })
      }
      const answer = await node(`
      import { readFileSync } from 'node:fs'
      const { VAULT_ADDR, VAULT_AUTH_PATH, VAULT_JWT_FILE, VAULT_ROLE } = process.env
      const login = await fetch(VAULT_ADDR + '/v1/auth/' + VAULT_AUTH_PATH + '/login', {
        method: 'POST',
        body: JSON.stringify({ role: VAULT_ROLE, jwt: readFileSync(VAULT_JWT_FILE, 'utf8') }),
      })
      const { auth, errors } = await login.json()
      const read = async (name) => {
        const headers = { 'x-vault-token': auth.client_token }
        const response = await fetch(VAULT_ADDR + '/v1/secret/data/' + name, { headers })
        return [response.status, (await response.json()).data?.data]
      }
      console.log(JSON.stringify(errors ?? { policies: auth.policies, cart: await read('cart'), other: await read('other') }))`)
      expect(answer).toEqual({ policies: ['cart', 'default'], cart: [200, { color: 'green' }], other: [403, null] })
    },
  )

  test('AWS: the default credential chain of the SDK assumes the role', async () => {
    const { node, variables } = await cluster.workload('aws')
    expect(Object.keys(variables).sort()).toEqual([
      'AWS_DEFAULT_REGION',
      'AWS_ENDPOINT_URL_STS',
      'AWS_REGION',
      'AWS_ROLE_ARN',
      'AWS_ROLE_SESSION_NAME',
      'AWS_STS_REGIONAL_ENDPOINTS',
      'AWS_WEB_IDENTITY_TOKEN_FILE',
    ])
    const credentials = await node(`
      import { fromNodeProviderChain } from '@aws-sdk/credential-providers'
      console.log(JSON.stringify(await fromNodeProviderChain()()))`)
    expect(credentials).toMatchObject({ accessKeyId: 'AKIATEST', sessionToken: 'session' })
    expect(amazon.verdicts).toEqual([[]])
    const { iss = '', ...claims } = decodeJwt(readFileSync(variables['AWS_WEB_IDENTITY_TOKEN_FILE'] ?? '', 'utf8'))
    const commands = commandsOf('aws')
    expect([argument(commands, 'url'), argument(commands, 'client-id-list')]).toEqual([iss, claims.aud])
    const trust = JSON.parse(/<<'END'\n([\s\S]*?)^END/m.exec(commands)?.[1] ?? '') as TrustPolicy
    const provider = iss.replace('https://', '')
    expect(trust.Statement[0]).toMatchObject({
      Principal: { Federated: `arn:aws:iam::123456789012:oidc-provider/${provider}` },
      Condition: { StringEquals: { [`${provider}:aud`]: claims.aud, [`${provider}:sub`]: claims.sub } },
    })
    expect(Object.fromEntries(amazon.calls[0]?.form ?? [])).toMatchObject({
      RoleArn: 'arn:aws:iam::123456789012:role/cart',
      RoleSessionName: 'shop-cart',
    })
  })

  test('Azure: WorkloadIdentityCredential signs in as the client of the tenant', async () => {
    const { node, variables } = await cluster.workload('azure')
    expect(Object.keys(variables).sort()).toEqual([
      'AZURE_AUTHORITY_HOST',
      'AZURE_CLIENT_ID',
      'AZURE_FEDERATED_TOKEN_FILE',
      'AZURE_TENANT_ID',
    ])
    // Instance discovery would query Microsoft about the stand-in.
    const answer = await node(`
      import { WorkloadIdentityCredential } from '@azure/identity'
      const credential = new WorkloadIdentityCredential({ disableInstanceDiscovery: true })
      console.log(JSON.stringify(await credential.getToken('https://vault.azure.net/.default')))`)
    expect(answer).toMatchObject({ token: 'entra-token' })
    expect(microsoft.verdicts).toEqual([[]])
    const { iss, sub, aud } = decodeJwt(readFileSync(variables['AZURE_FEDERATED_TOKEN_FILE'] ?? '', 'utf8'))
    const commands = commandsOf('azure')
    const credential = JSON.parse(/--parameters '([^']*)'/.exec(commands)?.[1] ?? '') as object
    expect(credential).toMatchObject({ issuer: iss, subject: sub, audiences: [aud] })
    expect(['issuer', 'subject', 'audiences'].map((name) => argument(commands, name))).toEqual([iss, sub, aud])
    expect(microsoft.calls[0]?.path).toBe('/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token')
    expect(microsoft.calls[0]?.form.get('client_id')).toBe('22222222-2222-2222-2222-222222222222')
  })

  test('Google Cloud: GoogleAuth reads the credential file and exchanges the token', async () => {
    const { node, variables } = await cluster.workload('gcp')
    expect(Object.keys(variables).sort()).toEqual([
      'CLOUDSDK_CORE_PROJECT',
      'GOOGLE_APPLICATION_CREDENTIALS',
      'GOOGLE_CLOUD_PROJECT',
      'GOOGLE_IDENTITY_TOKEN_FILE',
    ])
    const answer = await node(`
      import { GoogleAuth } from 'google-auth-library'
      const auth = new GoogleAuth({ scopes: 'https://www.googleapis.com/auth/cloud-platform' })
      console.log(JSON.stringify([await auth.getAccessToken(), await auth.getProjectId()]))`)
    expect(answer).toEqual(['google-token', 'shop-prod'])
    expect(google.verdicts).toEqual([[]])
    const { iss, sub } = decodeJwt(readFileSync(variables['GOOGLE_IDENTITY_TOKEN_FILE'] ?? '', 'utf8'))
    expect(argument(commandsOf('gcp'), 'issuer-uri')).toBe(iss)
    expect(argument(commandsOf('gcp'), 'member')).toMatch(new RegExp(`/workloadIdentityPools/clusters/subject/${sub}$`))
    expect(google.calls[0]?.form.get('audience')).toBe(
      '//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/shop',
    )
  })

  test.skipIf(inject('helm') === undefined)(
    'another cluster: a client with the kubeconfig has the rights of the binding, and no others',
    async () => {
      const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop'
      await cluster.server.client.must('POST', `${rbac}/roles`, blockOf<object>('another-cluster', 'role.yaml'))
      await cluster.server.client.must(
        'POST',
        `${rbac}/rolebindings`,
        blockOf<object>('another-cluster', 'binding.yaml'),
      )
      const { variables } = await cluster.workload('another-cluster')
      expect(Object.keys(variables).sort()).toEqual(['KUBECONFIG', 'KUBERNETES_TOKEN_FILE'])
      // helm reads kubeconfigs like kubectl, and lists ConfigMaps or Secrets, by its driver.
      const list = (driver: string): Promise<string> =>
        run(inject('helm') ?? '', ['list', '--output', 'json'], {
          env: { ...variables, HELM_DRIVER: driver },
          timeout: 30_000,
        }).then(
          ({ stdout }) => stdout.trim(),
          (error: { stderr?: string }) => error.stderr ?? '',
        )
      // An API server fetches the documents of an issuer every ten seconds until it has them.
      await vi.waitFor(async () => expect(await list('configmap')).toBe('[]'), { timeout: 60_000, interval: 2_000 })
      expect(await list('secret')).toMatch(
        /User "workload:k8s:shop:cart" cannot list resource "secrets".* in the namespace "shop"/,
      )
    },
  )

  test('a pod whose setting is missing is admitted without tokens, and its owner gets an event', async () => {
    const { client } = cluster.server
    await client.call('POST', '/api/v1/namespaces/shop/serviceaccounts', { metadata: { name: 'bare' } })
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'cart-5d9', uid: 'f00d', controller: true }
    const pod = {
      metadata: { name: 'bare', labels: { 'tremolo.io/aws': 'true' }, ownerReferences: [owner] },
      spec: { serviceAccountName: 'bare', containers: [{ name: 'app', image: 'example.test/app:1' }] },
    }
    const admitted = await client.must<{ spec: { initContainers?: unknown } }>(
      'POST',
      '/api/v1/namespaces/shop/pods',
      pod,
    )
    expect(admitted.spec.initContainers).toBeUndefined()
    interface Events {
      readonly items: readonly { reason: string; note: string; regarding: object }[]
    }
    await expect
      .poll(async () => (await client.must<Events>('GET', '/apis/events.k8s.io/v1/namespaces/shop/events')).items, {
        timeout: 20_000,
      })
      .toMatchObject([
        {
          reason: 'TokensNotInjected',
          note: expect.stringContaining('needs an annotation of the same name on the pod or its ServiceAccount'),
          regarding: { kind: 'ReplicaSet', name: 'cart-5d9', namespace: 'shop' },
        },
      ])
    const rows = await gateway.audit('sts.injector')
    expect(rows.at(-1)).toMatchObject({ action: 'refuse', subject: 'system:serviceaccount:shop:bare' })
    expect(rows.filter(({ action }) => action === 'add')).toHaveLength(hasOpenBao ? 5 : 4)
    expect(gateway.process().output()).not.toMatch(/forbidden/i)
  })
})

interface Call {
  readonly method: 'POST' | 'PUT'
  readonly path: string
  readonly body: Readonly<Record<string, string>>
}

/** The calls that the commands of `bao` send. */
function callsOf(commands: string): Call[] {
  const policies = Array.from(
    commands.matchAll(/^bao policy write (\S+) - <<'END'\n([\s\S]*?)^END$/gm),
    ([, name = '', policy = '']): Call => ({ method: 'PUT', path: `sys/policies/acl/${name}`, body: { policy } }),
  )
  const others = Array.from(
    commands.matchAll(/^bao (auth enable|write) (\S+)(.*)$/gm),
    ([, verb, path = '', rest = '']): Call => {
      if (verb === 'auth enable') return { method: 'POST', path: `sys/auth/${path}`, body: { type: path } }
      const pairs = rest
        .trim()
        .split(' ')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const)
      return { method: 'POST', path, body: Object.fromEntries(pairs) }
    },
  )
  return [...others, ...policies]
}
