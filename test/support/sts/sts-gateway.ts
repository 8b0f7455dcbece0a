import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditCommand } from '#cli/commands/audit.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import type { AccountName, KubeClient } from '#testing/kubernetes/kube-client.ts'

export interface StsGatewayOptions {
  /** Under `sts:` of the values document; the endpoints are its `endpoints`. */
  readonly sts: Readonly<Record<string, unknown>>
  readonly tls?: boolean
  readonly port?: number
  /** The namespace in which its account may also read and write ConfigMaps. */
  readonly configMapsIn?: string
  /** A MutatingWebhookConfiguration that is created, without webhooks, for the gateway to fill in. */
  readonly webhookConfiguration?: string
  /** Its account may read grants and namespaces, and write the status of grants and events. */
  readonly grants?: boolean
  /** Targets besides `k8s`, by name. */
  readonly otherClusters?: Readonly<Record<string, KubeClient>>
}

export interface TokenAnswer {
  readonly status: number
  /** The body of the answer, or the bare token if requested. */
  readonly body: string
  /** The code; `invalid_grant` for a subject token that is not accepted. */
  readonly error: string | undefined
  readonly retryAfter: string | undefined
}

export interface StsGateway {
  readonly config: string
  readonly dataFolder: string
  process(): GatewayProcess
  /** With the same data, at the same address. */
  restart(): Promise<void>
  exchange(endpoint: string, subjectToken: string): Promise<TokenAnswer>
  /** The decisions of the endpoint, or of `sts.injector`, so far, oldest first. */
  audit(endpoint: string): Promise<readonly AuditedDecision[]>
  stop(): Promise<void>
}

export interface AuditedDecision {
  readonly action: string
  readonly subject: string
  readonly reason: string
}

/** The environment in which a gateway, or a command, trusts the certificate of `test-certificates.ts`. */
export function trustingEnvironment(folder: string): Record<string, string> {
  const file = join(folder, 'test-authority.pem')
  writeFileSync(file, testServerCertificate)
  return { NODE_EXTRA_CA_CERTS: file }
}

/** A gateway process with token endpoints for the cluster `k8s`. Its account has the rights in the guide. */
export async function startStsGateway(cluster: KubeClient, options: StsGatewayOptions): Promise<StsGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sts-kube-'))
  const [config, dataFolder] = [mkdtempSync(join(folder, 'config-')), mkdtempSync(join(folder, 'data-'))]
  for (const [name, each] of Object.entries({ ...options.otherClusters, k8s: cluster })) {
    const token = await accountToken(each, each === cluster ? options : {})
    const { url, ca } = each.connection
    const spec = { className: 'targets.Kubernetes', params: { url, token, certificate: ca, timeoutMillis: '5000' } }
    const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name }, spec }
    writeFileSync(join(config, `${name}.yaml`), JSON.stringify(target))
  }
  writeFileSync(join(config, 'values.yaml'), JSON.stringify({ sts: options.sts }))
  writeFileSync(join(config, 'trusted.pem'), testServerCertificate)
  const { tls = false } = options
  const environment = trustingEnvironment(folder)
  const start = (port: number | undefined): Promise<GatewayProcess> =>
    startGatewayProcess({ config, dataFolder, tls, environment, ...(port === undefined ? {} : { port }) })
  let running = await start(options.port)
  return {
    config,
    dataFolder,
    process: () => running,
    restart: async () => {
      const port = Number(new URL(running.url).port)
      await running.stop()
      running = await start(port)
    },
    exchange: (endpoint, subjectToken) => exchange(`${running.url}/sts/${endpoint}/token`, subjectToken),
    audit: (endpoint) => auditOf(dataFolder, endpoint),
    stop: async () => {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Rights = Pick<StsGatewayOptions, 'configMapsIn' | 'webhookConfiguration' | 'grants'>

/** The token of an account with only the rights in the guides. */
async function accountToken(
  cluster: KubeClient,
  { configMapsIn, webhookConfiguration, grants }: Rights,
): Promise<string> {
  const account = { namespace: await cluster.namespace(), name: 'gatehouse' }
  await cluster.serviceAccount(account)
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const subjects = [{ kind: 'ServiceAccount', ...account }]
  const bind = (path: string, kind: string, role: string): Promise<unknown> =>
    cluster.must('POST', `${rbac}/${path}`, {
      metadata: { name: `${account.namespace}-${role.replaceAll(':', '-')}` },
      subjects,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: role },
    })
  await bind('clusterrolebindings', 'ClusterRole', 'system:auth-delegator')
  await bind('clusterrolebindings', 'ClusterRole', 'system:service-account-issuer-discovery')
  if (configMapsIn !== undefined) {
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'update'] }]
    const name = 'issuer-documents'
    await cluster.must('POST', `${rbac}/namespaces/${configMapsIn}/roles`, { metadata: { name }, rules })
    await bind(`namespaces/${configMapsIn}/rolebindings`, 'Role', name)
  }
  if (webhookConfiguration !== undefined) {
    const metadata = { name: webhookConfiguration }
    const group = 'admissionregistration.k8s.io'
    const resources = ['mutatingwebhookconfigurations']
    const rule = { apiGroups: [group], resources, resourceNames: [webhookConfiguration], verbs: ['get', 'update'] }
    await cluster.must('POST', `/apis/${group}/v1/mutatingwebhookconfigurations`, { metadata })
    const accounts = { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get'] }
    const events = { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] }
    await cluster.must('POST', `${rbac}/clusterroles`, { metadata, rules: [rule, accounts, events] })
    await bind('clusterrolebindings', 'ClusterRole', webhookConfiguration)
  }
  if (grants === true) {
    const group = 'gatehouse.dev'
    const rules = [
      { apiGroups: [group], resources: ['tokengrants'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [group], resources: ['tokengrants/status'], verbs: ['update'] },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
    ]
    const name = `${account.namespace}-grants`
    await cluster.must('POST', `${rbac}/clusterroles`, { metadata: { name }, rules })
    await bind('clusterrolebindings', 'ClusterRole', name)
  }
  return cluster.token(account, { seconds: 7200 })
}

/** A service account with a pod, to which its tokens are bound. */
export async function podWithAccount(cluster: KubeClient, account: AccountName, podName: string) {
  await cluster.serviceAccount(account)
  const boundPod = await cluster.pod(account, podName)
  const tokenFor = (...audiences: string[]): Promise<string> => cluster.token(account, { audiences, boundPod })
  return { account, pod: boundPod, tokenFor }
}

/** The exchange of a sidecar; the test's own authority is trusted. */
function exchange(url: string, subjectToken: string): Promise<TokenAnswer> {
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: subjectToken,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString()
  const headers = { accept: 'application/jwt', 'content-type': 'application/x-www-form-urlencoded' }
  if (url.startsWith('https:')) return overTls(url, headers, form)
  return fetch(url, { method: 'POST', headers, body: form, signal: AbortSignal.timeout(20_000) }).then(async (answer) =>
    answered(answer.status, await answer.text(), answer.headers.get('retry-after') ?? undefined),
  )
}

function overTls(url: string, headers: Record<string, string>, form: string): Promise<TokenAnswer> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, ca: testServerCertificate, signal: AbortSignal.timeout(20_000) }
    const sent = request(url, options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      response.on('end', () =>
        resolve(answered(response.statusCode ?? 0, Buffer.concat(chunks).toString(), response.headers['retry-after'])),
      )
    })
    sent.on('error', reject).end(form)
  })
}

function answered(status: number, body: string, retryAfter: string | undefined): TokenAnswer {
  const refusal = body.startsWith('{') ? (JSON.parse(body) as { error?: string; subject_token_error?: string }) : {}
  return { status, body, error: refusal.subject_token_error ?? refusal.error, retryAfter }
}

async function auditOf(dataFolder: string, endpoint: string): Promise<readonly AuditedDecision[]> {
  const lines: string[] = []
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
  await auditCommand(['tail', '--output', 'json', '--data', dataFolder, '--target', endpoint], io)
  const rows = JSON.parse(lines.join('\n')) as (AuditedDecision & { readonly kind: string })[]
  return rows.filter(({ kind }) => kind !== 'key')
}
