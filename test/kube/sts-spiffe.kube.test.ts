import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { spiffeVerifier } from '#testing/sts/spiffe-verifier.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

/** The certificate of the tests' listeners is for this address, which a trust domain may be named like. */
const domain = '127.0.0.1'

onKubernetes('a SPIFFE trust domain', (cluster) => {
  let gateway: StsGateway
  let shop = ''

  beforeAll(async () => {
    shop = await cluster.namespace()
    gateway = await startStsGateway(cluster, {
      tls: true,
      sts: {
        endpoints: [
          {
            name: 'mesh',
            preset: 'spiffe',
            audience: 'orders',
            path: '/sts/mesh',
            azRules: [{ scope: 'filter', constraint: `(namespace=${shop})` }],
            algorithm: 'ES256',
            issuer: { host: domain },
            host_in_openunison: true,
            keys: { readBack: 'written' },
            rateLimit: { burst: 1000, perMinute: 60_000 },
          },
        ],
      },
    })
  }, 120_000)

  afterAll(() => gateway?.stop())

  async function verified(token: string, audience: string): Promise<{ readonly id: string; readonly refusal: string }> {
    const authorities = join(gateway.dataFolder, 'authorities.pem')
    writeFileSync(authorities, testServerCertificate)
    const program = await spiffeVerifier()
    return new Promise((resolve) => {
      const args = [domain, `${gateway.process().url}/bundle`, authorities, audience]
      const child = execFile(program, args, { timeout: 60_000 }, (_error, id, refusal) =>
        resolve({ id: id.trim(), refusal: refusal.trim() }),
      )
      child.stdin?.end(token)
    })
  }

  test('go-spiffe accepts the token of a pod with the bundle of the endpoint, and for no other audience', async () => {
    const { tokenFor } = await podWithAccount(cluster, { namespace: shop, name: 'cart' }, 'cart-1')
    const { status, body } = await gateway.exchange('mesh', await tokenFor('gatehouse-sts'))
    expect(status).toBe(200)
    expect(await verified(body, 'orders')).toEqual({ id: `spiffe://${domain}/ns/${shop}/sa/cart`, refusal: '' })
    expect((await verified(body, 'payments')).refusal).toContain('expected audience')
    const [header = '', claims = ''] = body.split('.')
    const forged = `${header}.${claims}.${'A'.repeat(86)}`
    expect(await verified(forged, 'orders')).toEqual({ id: '', refusal: expect.stringContaining('jwtsvid') })
  })
})
