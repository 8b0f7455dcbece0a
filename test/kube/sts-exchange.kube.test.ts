import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { RunCommand } from '#cli/command-line/command-line.ts'
import { keysCommand } from '#cli/commands/keys.ts'
import { stsCommand } from '#cli/commands/sts.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { podWithAccount, type StsGateway, startStsGateway } from '#testing/sts/sts-gateway.ts'

const incoming = 'gatehouse-sts'
/** Ten seconds here, and ten in the API server, which caches its own answers as long. */
const remembered = 20_000

interface ConfigMap {
  readonly metadata: { readonly resourceVersion: string }
  readonly data: Readonly<Record<string, string>>
}

onKubernetes('the token service on a real API server', (cluster) => {
  let gateway: StsGateway
  let shop = ''
  let published = ''

  beforeAll(async () => {
    shop = await cluster.namespace()
    published = await cluster.namespace()
    await cluster.must('POST', `/api/v1/namespaces/${published}/configmaps`, {
      metadata: { name: 'aws-issuer', labels: { kept: 'yes' } },
      data: { other: 'stays' },
    })
    const configMap = (name: string) => [{ type: 'configmap', target: 'k8s', namespace: published, name }]
    const common = {
      azRules: [{ scope: 'filter', constraint: `(&(namespace=${shop})(saname=cart))` }],
      rateLimit: { burst: 1000, perMinute: 60_000 },
    }
    const keys = { readBack: 'written', cdnSeconds: 60 }
    gateway = await startStsGateway(cluster, {
      configMapsIn: published,
      sts: {
        endpoints: [
          {
            ...common,
            name: 'aws',
            audience: 'sts.amazonaws.com',
            path: '/sts/aws',
            preset: 'aws',
            issuer: { host: 'issuer.example.com', path: '/aws' },
            additionalAttributes: ['pod-name', 'pod-uid'],
            keys,
            publish: configMap('aws-issuer'),
          },
          {
            ...common,
            name: 'claude',
            audience: 'https://api.anthropic.com',
            path: '/sts/claude',
            algorithm: 'ES256',
            ttlSeconds: 3600,
            issuer: { host: 'issuer.example.com', path: '/claude' },
            keys,
            publish: configMap('claude-issuer'),
          },
          {
            ...common,
            name: 'old',
            audience: 'old',
            path: '/sts/old',
            acceptApiServerAudience: true,
            issuer: { host: 'issuer.example.com', path: '/old' },
            keys,
            publish: [{ type: 'configmap', target: 'k8s', namespace: shop, name: 'old-issuer' }],
          },
        ],
      },
    })
  }, 120_000)

  afterAll(() => gateway?.stop())

  const pod = (namespace: string, name: string) => podWithAccount(cluster, { namespace, name }, `${name}-1`)

  const command = async (run: RunCommand, ...args: string[]): Promise<{ code: number; text: string }> => {
    const lines: string[] = []
    const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void lines.push(line) }
    return { code: await run([...args, '--data', gateway.dataFolder], io), text: lines.join('\n') }
  }

  /** With both documents, which are written soon after the gateway is ready. */
  const configMap = (name: string): Promise<ConfigMap> =>
    vi.waitFor(
      async () => {
        const path = `/api/v1/namespaces/${published}/configmaps/${name}`
        const found = await cluster.must<ConfigMap>('GET', path)
        expect(Object.keys(found.data)).toEqual(expect.arrayContaining(['certs', 'openid-configuration']))
        return found
      },
      { timeout: 20_000, interval: 250 },
    )

  test('one pod gets two valid tokens of two endpoints, which the keys in the cluster’s ConfigMaps verify', async () => {
    const { pod: own, tokenFor } = await pod(shop, 'cart')
    const subjectToken = await tokenFor(incoming)
    const answers = await Promise.all(['aws', 'claude'].map((endpoint) => gateway.exchange(endpoint, subjectToken)))
    expect(answers.map(({ status, error }) => [status, error])).toEqual([
      [200, undefined],
      [200, undefined],
    ])
    const audiences = ['sts.amazonaws.com', 'https://api.anthropic.com']
    for (const [position, name] of ['aws', 'claude'].entries()) {
      const { data } = await configMap(`${name}-issuer`)
      const { issuer, jwks_uri } = JSON.parse(data['openid-configuration'] ?? '') as Record<string, string>
      expect([issuer, jwks_uri]).toEqual([
        `https://issuer.example.com/${name}`,
        `https://issuer.example.com/${name}/certs`,
      ])
      const keys = createLocalJWKSet(JSON.parse(data['certs'] ?? '') as JSONWebKeySet)
      const expected = { issuer: `https://issuer.example.com/${name}`, audience: audiences[position] ?? '' }
      const { payload } = await jwtVerify(answers[position]?.body ?? '', keys, expected)
      expect(payload).toMatchObject({ sub: `k8s:${shop}:cart`, cluster: 'k8s', namespace: shop, saname: 'cart' })
    }
    expect(decodeJwt(answers[0]?.body ?? '')).toMatchObject({ 'pod-name': own.name, 'pod-uid': own.uid })
  })

  test('other data in a ConfigMap stays, and so do its labels', async () => {
    const found = await configMap('aws-issuer')
    expect(Object.keys(found.data).toSorted()).toEqual(['certs', 'openid-configuration', 'other'])
    expect(found.metadata).toMatchObject({ labels: { kept: 'yes' } })
  })

  test('“gatehouse sts publish” re-creates a deleted ConfigMap', async () => {
    const { data } = await configMap('claude-issuer')
    await cluster.must('DELETE', `/api/v1/namespaces/${published}/configmaps/claude-issuer`)
    const { code, text } = await command(stsCommand, 'publish', '--config', gateway.config, '--endpoint', 'claude')
    expect([code, text]).toEqual([0, expect.stringMatching(/published to configmap .*claude-issuer/)])
    expect((await configMap('claude-issuer')).data).toEqual(data)
  })

  test('if the account may not write, operators see the reason', async () => {
    await vi.waitFor(
      async () => {
        const { code, text } = await command(keysCommand, 'list', '--endpoint', 'old')
        expect([code, text]).toEqual([1, expect.stringMatching(/old-issuer: .*configmaps.* forbidden/)])
      },
      { timeout: 20_000, interval: 250 },
    )
  })

  test('a token never outlives the presented one', async () => {
    const account = { namespace: shop, name: 'cart' }
    const boundPod = await cluster.pod(account, 'cart-brief')
    const token = await cluster.token(account, { audiences: [incoming], boundPod, seconds: 600 })
    const { status, body } = await gateway.exchange('claude', token)
    expect(status).toBe(200)
    expect(decodeJwt(body).exp).toBeLessThanOrEqual(decodeJwt(token).exp ?? 0)
  })

  test('rejects tokens for other audiences', async () => {
    const { account, pod: boundPod, tokenFor } = await pod(await cluster.namespace(), 'cart')
    const own = await cluster.token(account, { boundPod })
    const cases: readonly (readonly [what: string, token: string])[] = [
      ['another audience', await tokenFor('elsewhere')],
      ['the API server’s own audience', own],
      ['ours and the API server’s', await tokenFor(incoming, decodeJwt(own).iss ?? '')],
      ['no pod', await cluster.token(account, { audiences: [incoming] })],
      ['a user’s token that is not a JWT', cluster.connection.adminToken],
      ['another signature', `${own.slice(0, own.lastIndexOf('.'))}.${'A'.repeat(342)}`],
      ['no algorithm', unsigned(await tokenFor(incoming))],
    ]
    for (const [what, token] of cases) {
      const { status, error } = await gateway.exchange('aws', token)
      expect([what, status, error]).toEqual([what, 400, 'invalid_grant'])
    }
    const rows = await gateway.audit('aws')
    expect(rows.filter(({ action }) => action === 'refuse').length).toBeGreaterThanOrEqual(cases.length)
    for (const [, token] of cases) expect(JSON.stringify(rows)).not.toContain(token)
  })

  test('rejects accounts that only resemble the one in the rule', async () => {
    const elsewhere = await cluster.namespace()
    const accounts: readonly (readonly [namespace: string, name: string])[] = [
      [elsewhere, 'cart'],
      [shop, 'cart2'],
      [shop, 'car'],
      [shop, 'cart.x'],
      [shop, 'x.cart'],
      [shop, `${shop}.cart`],
    ]
    for (const [namespace, name] of accounts) {
      const { tokenFor } = await podWithAccount(cluster, { namespace, name }, `pod-${name}`)
      const { status, error } = await gateway.exchange('aws', await tokenFor(incoming))
      expect([name, status, error]).toEqual([name, 403, 'access_denied'])
    }
  })

  test('only the configured endpoint accepts tokens of old sidecars', async () => {
    const boundPod = await cluster.pod({ namespace: shop, name: 'cart' }, 'cart-old')
    const token = await cluster.token({ namespace: shop, name: 'cart' }, { boundPod })
    expect((await gateway.exchange('old', token)).status).toBe(200)
    expect((await gateway.exchange('aws', token)).error).toBe('invalid_grant')
  })

  // Both mostly wait.
  test.concurrent('deleting the pod ends its tokens permanently, within the cache time of answers', async () => {
    const account = { namespace: shop, name: 'cart' }
    const boundPod = await cluster.pod(account, 'cart-doomed')
    const token = await cluster.token(account, { audiences: [incoming], boundPod })
    expect((await gateway.exchange('aws', token)).status).toBe(200)
    await cluster.deletePod(shop, boundPod.name)
    const deleted = performance.now()
    await vi.waitFor(async () => expect((await gateway.exchange('aws', token)).error).toBe('invalid_grant'), {
      timeout: remembered + 5000,
      interval: 200,
    })
    expect(performance.now() - deleted).toBeLessThan(remembered + 2000)
    // A new pod with the same name is another one.
    await cluster.pod(account, boundPod.name)
    for (let again = 0; again < 5; again++) expect((await gateway.exchange('aws', token)).status).toBe(400)
    const refused = (await gateway.audit('aws')).filter(({ action }) => action === 'refuse')
    expect(refused.at(-1)).toMatchObject({ subject: `system:serviceaccount:${shop}:cart` })
  })

  test.concurrent('nor does it last longer if the API server remembers the pod from another caller’s review', async () => {
    const account = { namespace: shop, name: 'cart' }
    const boundPod = await cluster.pod(account, 'cart-remembered')
    const token = await cluster.token(account, { audiences: [incoming], boundPod })
    const review = { spec: { token, audiences: [incoming] } }
    await cluster.must('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review)
    await cluster.deletePod(shop, boundPod.name)
    const deleted = performance.now()
    await new Promise((resume) => setTimeout(resume, 8000))
    await vi.waitFor(async () => expect((await gateway.exchange('aws', token)).error).toBe('invalid_grant'), {
      timeout: remembered + 5000,
      interval: 500,
    })
    expect(performance.now() - deleted).toBeLessThan(remembered + 2000)
  })

  test('deleting the service account ends them too, even if one with the same name is created', async () => {
    const account = { namespace: shop, name: 'cart' }
    const boundPod = await cluster.pod(account, 'cart-orphan')
    const token = await cluster.token(account, { audiences: [incoming], boundPod })
    await cluster.must('DELETE', `/api/v1/namespaces/${shop}/serviceaccounts/cart`)
    await cluster.serviceAccount(account)
    await vi.waitFor(async () => expect((await gateway.exchange('aws', token)).error).toBe('invalid_grant'), {
      timeout: remembered + 5000,
      interval: 200,
    })
    const other = await cluster.pod(account, 'cart-anew')
    const fresh = await cluster.token(account, { audiences: [incoming], boundPod: other })
    expect((await gateway.exchange('aws', fresh)).status).toBe(200)
  })
})

const unsigned = (token: string): string => {
  const [, claims = ''] = token.split('.')
  return `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.AA`
}
