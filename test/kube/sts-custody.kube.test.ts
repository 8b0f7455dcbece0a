import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import { keyIn, leastWaitSeconds, marginSeconds } from '#keys/key-ring.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { ageKeys, storedKeys } from '#testing/sts/aged-keys.ts'
import { type IssuerSite, openIssuerSite } from '#testing/sts/issuer-site.ts'
import { type OpenBao, startOpenBao } from '#testing/sts/openbao.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const copySeconds = 5
const wait = (millis: number): Promise<void> => new Promise((resume) => setTimeout(resume, millis))

/** A verifier with a copy of the published keys that it caches as long as allowed, and never refreshes earlier. */
class Verifier {
  readonly refusals: string[] = []
  readonly kids = new Set<string>()
  accepted = 0
  #copy: { readonly keys: JSONWebKeySet; readonly until: number } | undefined
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  async show(token: string): Promise<void> {
    if (this.#copy === undefined || Date.now() >= this.#copy.until) {
      const until = Date.now() + copySeconds * 1000
      this.#copy = { keys: JSON.parse(await get(`${this.#url}/certs`)) as JSONWebKeySet, until }
    }
    const { kid = '' } = decodeProtectedHeader(token)
    try {
      await jwtVerify(token, createLocalJWKSet(this.#copy.keys), { issuer: this.#url, audience: 'consumer' })
      this.accepted++
      this.kids.add(kid)
    } catch (error) {
      this.refusals.push(`${kid} ${String(error)}`)
    }
  }
}

function get(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(url, { ca: testServerCertificate, signal: AbortSignal.timeout(10_000) }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      answer.on('end', () => resolve(Buffer.concat(chunks).toString()))
    })
      .on('error', reject)
      .end()
  })
}

onKubernetes('signing keys in Transit', (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-custody-'))
  const documents = join(folder, 'documents')
  let bao: OpenBao
  let site: IssuerSite
  let gateway: StsGateway
  let verifier: Verifier
  let subjectToken = ''

  beforeAll(async () => {
    if (inject('openbao') === undefined) return
    mkdirSync(documents)
    bao = await startOpenBao({ tls: true })
    site = await openIssuerSite(documents, '', true)
    site.headers = { 'cache-control': `public, max-age=${copySeconds}` }
    await bao.call('POST', 'sys/mounts/transit', { type: 'transit' })
    const policy = `path "transit/keys/cloud" { capabilities = ["read", "create", "update"] }
path "transit/keys/cloud/rotate" { capabilities = ["update"] }
path "transit/sign/cloud/*" { capabilities = ["update"] }`
    await bao.call('PUT', 'sys/policies/acl/gatehouse', { policy })

    // The gateway logs in as a workload of the cluster, and the API server verifies it.
    const home = await cluster.namespace()
    const account = { namespace: home, name: 'gatehouse' }
    await cluster.serviceAccount(account)
    const reviewer = { namespace: home, name: 'reviewer' }
    await cluster.serviceAccount(reviewer)
    await cluster.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: `${home}-reviewer` },
      subjects: [{ kind: 'ServiceAccount', ...reviewer }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:auth-delegator' },
    })
    await bao.call('POST', 'sys/auth/kubernetes', { type: 'kubernetes' })
    await bao.call('POST', 'auth/kubernetes/config', {
      kubernetes_host: cluster.connection.url,
      kubernetes_ca_cert: cluster.connection.ca,
      token_reviewer_jwt: await cluster.token(reviewer, { seconds: 7200 }),
      disable_local_ca_jwt: true,
    })
    await bao.call('POST', 'auth/kubernetes/role/gatehouse', {
      bound_service_account_names: ['gatehouse'],
      bound_service_account_namespaces: [home],
      audience: 'openbao',
      token_policies: ['gatehouse'],
      token_ttl: 600,
    })
    const jwtFile = join(folder, 'jwt')
    writeFileSync(jwtFile, await cluster.token(account, { audiences: ['openbao'], seconds: 7200 }))

    const shop = await cluster.namespace()
    const { tokenFor } = await podWithAccount(cluster, { namespace: shop, name: 'cart' }, 'cart-1')
    subjectToken = await tokenFor('gatehouse-sts')
    gateway = await startStsGateway(cluster, {
      sts: {
        endpoints: [
          {
            name: 'cloud',
            audience: 'consumer',
            path: '/sts/cloud',
            algorithm: 'ES256',
            ttlSeconds: 60,
            issuer: { host: new URL(site.url).host, path: '/cloud' },
            publish: [{ type: 'folder', folder: join(documents, 'cloud') }],
            azRules: [{ scope: 'filter', constraint: `(&(namespace=${shop})(saname=cart))` }],
            rateLimit: { burst: 1000, perMinute: 60_000 },
            keys: {
              custody: {
                type: 'transit',
                address: bao.address,
                ca: bao.ca,
                login: { role: 'gatehouse', jwtFile },
              },
            },
          },
        ],
      },
    })
    // A gateway answers before it has published its first key.
    await vi.waitFor(() => expect(existsSync(join(documents, 'cloud', 'certs'))).toBe(true), { timeout: 60_000 })
    verifier = new Verifier(`${site.url}/cloud`)
  }, 240_000)

  afterAll(async () => {
    await gateway?.stop()
    site?.close()
    await bao?.stop()
    rmSync(folder, { recursive: true, force: true })
  }, 60_000)

  const version = async (state: 'active' | 'next'): Promise<number | undefined> =>
    keyIn(await storedKeys(gateway.dataFolder, 'cloud'), state)?.custody?.version

  test.skipIf(inject('openbao') === undefined)(
    'no token is rejected during a rotation and a crash of the service, and the outage is answered with 503',
    { timeout: 300_000 },
    async () => {
      const stop = new AbortController()
      const answers = new Map<number, number>()
      const exchanging = (async () => {
        while (!stop.signal.aborted) {
          const { status, body } = await gateway.exchange('cloud', subjectToken)
          answers.set(status, (answers.get(status) ?? 0) + 1)
          if (status === 200) await verifier.show(body)
          await wait(50)
        }
      })()
      try {
        await vi.waitFor(() => expect(verifier.accepted).toBeGreaterThan(5), { timeout: 60_000, interval: 250 })
        expect(await version('active')).toBe(1)

        // An operator rotates the key in its service; the gateway publishes the new version before it signs.
        await bao.call('POST', 'transit/keys/cloud/rotate', {})
        const seen = async (): Promise<void> => {
          const next = keyIn(await storedKeys(gateway.dataFolder, 'cloud'), 'next')
          expect([next?.custody?.version, next?.visible === null]).toEqual([2, false])
        }
        await vi.waitFor(seen, { timeout: 120_000, interval: 500 })
        await wait(2 * copySeconds * 1000)
        expect(verifier.kids.size).toBe(1)
        await ageKeys(gateway.dataFolder, 'cloud', leastWaitSeconds + marginSeconds)
        await vi.waitFor(async () => expect(await version('active')).toBe(2), { timeout: 120_000, interval: 500 })
        await vi.waitFor(() => expect(verifier.kids.size).toBe(2), { timeout: 60_000, interval: 250 })
        expect([...answers.keys()]).toEqual([200])

        await bao.kill()
        await vi.waitFor(() => expect(answers.get(503) ?? 0).toBeGreaterThan(20), { timeout: 60_000, interval: 250 })
        const refused = await fetch(`${gateway.process().url}/sts/cloud/token`, {
          method: 'POST',
          body: new URLSearchParams({
            grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
            subject_token: subjectToken,
            subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
          }),
        })
        expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([503, true])
        const metrics = await (await fetch(`${gateway.process().metricsUrl}/metrics`)).text()
        expect(metrics).toMatch(/gatehouse_key_custody_requests_total\{operation="sign",outcome="skipped"\} \d/)
        await bao.restart()
        const before = verifier.accepted
        await vi.waitFor(() => expect(verifier.accepted).toBeGreaterThan(before + 20), {
          timeout: 60_000,
          interval: 250,
        })
      } finally {
        stop.abort()
        await exchanging
      }
      expect(verifier.refusals).toEqual([])
      expect([...answers.keys()].sort()).toEqual([200, 503])
      expect(verifier.accepted).toBe(answers.get(200))
    },
  )
})
