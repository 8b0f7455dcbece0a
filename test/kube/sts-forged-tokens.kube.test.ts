import { createHmac, createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const incoming = 'gatehouse-sts'
/** Ten seconds here, and ten in the API server. */
const remembered = 20_000

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decoded = (part = ''): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())

onKubernetes('tokens that are no longer or never were good for the API server', (cluster) => {
  let gateway: StsGateway
  let namespace = ''

  beforeAll(async () => {
    namespace = await cluster.namespace()
    const endpoint = (name: string, more: object): object => ({
      name,
      audience: name,
      path: `/sts/${name}`,
      issuer: { host: `${name}.example.com` },
      azRules: [{ scope: 'filter', constraint: `(&(namespace=${namespace})(|(saname=cart)(saname=admin)))` }],
      rateLimit: { burst: 1000, perMinute: 60_000 },
      ...more,
    })
    gateway = await startStsGateway(cluster, {
      sts: { endpoints: [endpoint('pods', {}), endpoint('all', { acceptTokensWithoutPod: true })] },
    })
  }, 120_000)

  afterAll(() => gateway?.stop())

  test('forged tokens are refused, whatever their header says about the key', async () => {
    const { tokenFor } = await podWithAccount(cluster, { namespace, name: 'cart' }, 'cart-1')
    const [head, body, signature] = (await tokenFor(incoming)).split('.')
    const header = decoded(head)
    const claims = decoded(body)
    const { keys } = JSON.parse(await cluster.must<string>('GET', '/openid/v1/jwks')) as { keys: JsonWebKey[] }
    const [published = {}] = keys
    const pem = createPublicKey({ key: published, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const jwk = own.publicKey.export({ format: 'jwk' })
    const admin = { ...claims, sub: `system:serviceaccount:${namespace}:admin` }
    const signed = (head: object, payload: object, key: KeyObject = own.privateKey): string => {
      const text = `${encoded(head)}.${encoded(payload)}`
      return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`
    }
    const keyed = (secret: string | Buffer): string => {
      const text = `${encoded({ ...header, alg: 'HS256' })}.${encoded(claims)}`
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
    }
    const forged: Readonly<Record<string, string>> = {
      'own key under the name of the cluster’s': signed(header, admin),
      'own key in the header': signed({ ...header, jwk }, admin),
      'own key without a name': signed({ alg: 'RS256' }, admin),
      'address of own keys': signed({ ...header, jku: 'http://127.0.0.1:1/keys', x5u: 'http://127.0.0.1:1/' }, admin),
      'name of a file': signed({ ...header, kid: '../../../dev/null' }, admin),
      'public key as a secret': keyed(pem),
      'published key as a secret': keyed(JSON.stringify(published)),
      'other claims under a good signature': `${head}.${encoded(admin)}.${signature}`,
      'other header over a good signature': `${encoded({ ...header, crit: ['exp'] })}.${body}.${signature}`,
      'no signature': `${head}.${body}.`,
      'unpadded bits': `${head}.${body}.${signature?.slice(0, -1)}`,
      'signature of zeros': `${head}.${body}.${Buffer.alloc(256).toString('base64url')}`,
      'a second payload': `${head}.${body}.${signature}.${encoded(admin)}`,
    }
    for (const [what, token] of Object.entries(forged)) {
      const { status, error } = await gateway.exchange('all', token)
      expect([what, status, error]).toEqual([what, 400, 'invalid_grant'])
    }
    expect((await gateway.exchange('all', `${head}.${body}.${signature}`)).status).toBe(200)
  })

  test('a token that is bound to a secret or a node counts only without a pod, and ends with what it is bound to', async () => {
    const account = { namespace, name: 'admin' }
    await cluster.serviceAccount(account)
    const secrets = `/api/v1/namespaces/${namespace}/secrets`
    const node = `node-${namespace}`
    const places: readonly (readonly [kind: string, name: string, path: string])[] = [
      ['Secret', 'binding', secrets],
      ['Node', node, '/api/v1/nodes'],
    ]
    const bound = await Promise.all(
      places.map(async ([kind, name, path]) => {
        const { metadata } = await cluster.must<{ metadata: { uid: string } }>('POST', path, { metadata: { name } })
        const boundObjectRef = { apiVersion: 'v1', kind, name, uid: metadata.uid }
        const { status } = await cluster.must<{ status: { token: string } }>(
          'POST',
          `/api/v1/namespaces/${namespace}/serviceaccounts/admin/token`,
          { spec: { audiences: [incoming], boundObjectRef } },
        )
        return status.token
      }),
    )
    for (const token of bound) {
      expect((await gateway.exchange('pods', token)).error).toBe('invalid_grant')
      expect((await gateway.exchange('all', token)).status).toBe(200)
    }
    for (const [, name, path] of places) {
      await cluster.must('DELETE', `${path}/${name}`)
      // With the same name it is another one.
      await cluster.must('POST', path, { metadata: { name } })
    }
    await Promise.all(
      bound.map((token) =>
        vi.waitFor(async () => expect((await gateway.exchange('all', token)).error).toBe('invalid_grant'), {
          timeout: remembered + 10_000,
          interval: 500,
        }),
      ),
    )
    await cluster.must('DELETE', `/api/v1/nodes/${node}`)
  }, 60_000)
})
