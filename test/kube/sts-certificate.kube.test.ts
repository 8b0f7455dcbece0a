import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { freshCertificate, testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { KubeClient } from '#testing/kubernetes/kube-client.ts'
import { replaceCertificate, startExchanges } from '#testing/sts/exchanges-over-tls.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const soon = { timeout: 60_000, interval: 100 }

describe.skipIf(inject('kube') === undefined)('the certificate of the token service', { timeout: 180_000 }, () => {
  const cluster = new KubeClient(inject('kube') ?? { url: '', ca: '', adminToken: '', kubeconfig: '' })
  let gateway: StsGateway
  let token = ''

  beforeAll(async () => {
    const namespace = await cluster.namespace()
    const { tokenFor } = await podWithAccount(cluster, { namespace, name: 'cart' }, 'cart-1')
    token = await tokenFor('gatehouse-sts')
    const endpoint = {
      name: 'aws',
      audience: 'sts.amazonaws.com',
      path: '/sts/aws',
      issuer: { host: 'issuer.example.com' },
      azRules: [{ scope: 'filter', constraint: `(namespace=${namespace})` }],
      rateLimit: { burst: 1000, perMinute: 60_000 },
    }
    gateway = await startStsGateway(cluster, { sts: { endpoints: [endpoint] }, tls: true })
  }, 180_000)

  afterAll(async () => {
    await gateway?.stop()
    cluster.close()
  }, 30_000)

  test('is replaced while pods exchange tokens, and no call fails', async () => {
    const second = freshCertificate()
    const url = `${gateway.process().url}/sts/aws/token`
    const load = startExchanges(url, token, [testServerCertificate, second.authority])
    const serials = (): readonly string[] => [...new Set(load.answers.new.map(({ serial }) => serial))]
    await vi.waitFor(() => expect(serials()).toHaveLength(1), soon)
    replaceCertificate(gateway.dataFolder, second)
    await vi.waitFor(() => expect(serials()).toHaveLength(2), soon)
    await load.stop()
    expect(load.failures).toEqual([])
  })
})
