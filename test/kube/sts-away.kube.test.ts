import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { inParallel } from '#kernel/in-parallel.ts'
import { type KubeApiServer, startKubeApiServer } from '#testing/kubernetes/kube-api-server.ts'
import { kubeBinaries } from '#testing/kubernetes/kube-binaries.ts'
import { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const incoming = 'gatehouse-sts'
const offlineSeconds = 25
const remembered = 20_000
const wait = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms))

describe.skipIf(inject('kube') === undefined)('while the API server is down', { timeout: 180_000 }, () => {
  let server: KubeApiServer
  let gateway: StsGateway
  let workload: Awaited<ReturnType<typeof podWithAccount>>
  let twin: typeof workload
  let token = ''
  const connection = inject('kube')
  const other = new KubeClient(connection ?? { url: '', ca: '', adminToken: '', kubeconfig: '' })

  beforeAll(async () => {
    server = await startKubeApiServer(await kubeBinaries())
    const namespace = await server.client.namespace()
    workload = await podWithAccount(server.client, { namespace, name: 'cart' }, 'cart-1')
    await other.must('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
    twin = await podWithAccount(other, { namespace, name: 'cart' }, 'cart-1')
    const endpoint = (name: string, more: object): object => ({
      name,
      audience: name,
      path: `/sts/${name}`,
      issuer: { host: `${name}.example.com` },
      azRules: [{ scope: 'filter', constraint: `(&(namespace=${namespace})(saname=cart))` }],
      rateLimit: { burst: 1000, perMinute: 60_000 },
      ...more,
    })
    gateway = await startStsGateway(server.client, {
      sts: {
        endpoints: [
          endpoint('required', { clusters: ['k8s'] }),
          endpoint('offline', { clusters: ['k8s'], whenApiServerIsAway: 'offline-ok', offlineSeconds }),
          endpoint('both', { clusters: ['k8s', 'other'] }),
          endpoint('other', {
            clusters: ['k8s', 'other'],
            azRules: [{ scope: 'filter', constraint: `(&(cluster=other)(namespace=${namespace})(saname=cart))` }],
          }),
        ],
      },
      otherClusters: { other },
    })
    token = await workload.tokenFor(incoming)
  }, 180_000)

  afterAll(async () => {
    await gateway?.stop()
    other.close()
    server?.client.close()
    await server?.stop()
  }, 30_000)

  const statuses = async (subjectToken = token): Promise<readonly number[]> => [
    (await gateway.exchange('required', subjectToken)).status,
    (await gateway.exchange('offline', subjectToken)).status,
  ]

  test('clusters with the same issuer and the same accounts are distinguished by their signatures', async () => {
    const brought = { k8s: token, other: await twin.tokenFor(incoming) }
    for (const [cluster, each] of Object.entries(brought)) {
      const { status, body } = await gateway.exchange('both', each)
      expect([status, decodeJwt(body).sub]).toEqual([200, `${cluster}:${twin.account.namespace}:cart`])
      expect((await gateway.exchange('other', each)).error).toBe(cluster === 'other' ? undefined : 'access_denied')
    }
    expect((await gateway.exchange('required', brought.other)).error).toBe('invalid_grant')
  })

  test('“required” issues nothing, “offline-ok” accepts signatures for its time, and both recover when it is back', async () => {
    expect(await statuses()).toEqual([200, 200])
    const unseen = await workload.tokenFor(incoming)
    const elsewhere = await workload.tokenFor('elsewhere')
    const lookAlike = await podWithAccount(server.client, { ...workload.account, name: 'cart2' }, 'cart2-1')
    const other = await lookAlike.tokenFor(incoming)
    await server.kill()
    const killed = performance.now()

    // A recently reviewed token is remembered; for another one there is only the signature.
    expect((await gateway.exchange('required', unseen)).status).toBe(503)
    expect((await gateway.exchange('offline', unseen)).status).toBe(200)
    const forged = `${unseen.slice(0, unseen.lastIndexOf('.'))}.${'A'.repeat(342)}`
    expect((await gateway.exchange('offline', elsewhere)).error).toBe('invalid_grant')
    expect((await gateway.exchange('offline', forged)).error).toBe('invalid_grant')
    expect((await gateway.exchange('offline', other)).error).toBe('access_denied')

    await wait(11_000 - (performance.now() - killed))
    expect(await statuses()).toEqual([503, 200])
    const [decision] = (await gateway.audit('offline')).filter(({ action }) => action === 'issue').slice(-1)
    expect(JSON.parse(decision?.reason ?? '{}')).toMatchObject({ review: 'offline' })

    await wait((offlineSeconds + 1) * 1000 - (performance.now() - killed))
    expect(await statuses()).toEqual([503, 503])

    await server.restart()
    await vi.waitFor(async () => expect(await statuses()).toEqual([200, 200]), { timeout: 20_000, interval: 250 })
    expect(JSON.parse((await gateway.audit('offline')).at(-1)?.reason ?? '{}')).toMatchObject({ review: 'online' })
  })

  test('a deleted pod gets nothing when the API server is back, even if it was accepted meanwhile', async () => {
    await server.client.deletePod(workload.account.namespace, workload.pod.name)
    await vi.waitFor(async () => expect(await statuses()).toEqual([400, 400]), {
      timeout: remembered + 5000,
      interval: 250,
    })
  })

  test('a gateway that starts while the API server is down never connected to it, so it issues nothing', async () => {
    const boundPod = await server.client.pod(workload.account, 'cart-2')
    const fresh = await server.client.token(workload.account, { audiences: [incoming], boundPod })
    expect(await statuses(fresh)).toEqual([200, 200])
    await server.kill()
    await gateway.restart()
    expect(await statuses(fresh)).toEqual([503, 503])
    // It may belong to either until one of them knows it.
    expect((await gateway.exchange('both', fresh)).status).toBe(503)
    expect((await gateway.exchange('both', await twin.tokenFor(incoming))).status).toBe(200)
    await server.restart()
    await vi.waitFor(async () => expect(await statuses(fresh)).toEqual([200, 200]), { timeout: 30_000, interval: 250 })
  })

  test('while it hangs, “offline-ok” serves 300 pods as soon as that is detected, and “required” answers 503 at once', async () => {
    const names = Array.from({ length: 301 }, (_, i) => `many-${i}`)
    const [[unseen] = [''], ...tokens] = await inParallel(names, 16, async (name) => {
      const boundPod = await server.client.pod(workload.account, name)
      const next = (): Promise<string> => server.client.token(workload.account, { audiences: [incoming], boundPod })
      return [await next(), await next()] as const
    })
    const serve = async (which: 0 | 1): Promise<number> => {
      const started = performance.now()
      const answers = await Promise.all(tokens.map((pair) => gateway.exchange('offline', pair[which])))
      expect(answers.filter(({ status }) => status !== 200)).toEqual([])
      return (performance.now() - started) / 1000
    }
    const healthy = await serve(0)
    await server.pause()
    try {
      // A sidecar waits ten seconds; a slow machine adds three seconds at most.
      expect(await serve(1)).toBeLessThan(Math.max(10, healthy + 6))
      const asked = performance.now()
      const { status, retryAfter } = await gateway.exchange('required', unseen)
      expect([status, retryAfter]).toEqual([503, '2'])
      expect(performance.now() - asked).toBeLessThan(2_500)
      expect(await away()).toBe('1')
    } finally {
      server.resume()
    }
    await vi.waitFor(async () => expect((await gateway.exchange('required', unseen)).status).toBe(200), {
      timeout: 30_000,
      interval: 250,
    })
    expect(await away()).toBe('0')
    const count = (text: string): number => gateway.process().output().split(text).length - 1
    await vi.waitFor(() => expect(count('API server of a cluster answers again')).toBeGreaterThan(0), {
      timeout: 10_000,
    })
    expect(count('no workload waits for the API server')).toBe(1)
  })

  const away = async (): Promise<string | undefined> => {
    const text = await (await fetch(`${gateway.process().metricsUrl}/metrics`)).text()
    return /^gatehouse_sts_api_server_away\{cluster="k8s"\} (\d)$/m.exec(text)?.[1]
  }
})
