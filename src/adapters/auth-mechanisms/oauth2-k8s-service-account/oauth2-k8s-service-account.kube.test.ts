import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import kubernetes from '#adapters/targets/kubernetes/kubernetes.ts'
import type { AuthMechanism, AuthOutcome } from '#sdk/auth/auth-mechanism.ts'
import { reviewsTokens, type TokenReviewer } from '#sdk/target/token-review.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { onKubernetes } from '#testing/kubernetes/on-kubernetes.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import serviceAccount from './oauth2-k8s-service-account.ts'

onKubernetes('service-account tokens of a real cluster', (cluster) => {
  const { url, ca, adminToken, kubeconfig } = cluster.connection
  let now = Date.now()

  /** An account with a pod, in their own namespace. */
  async function workload() {
    const namespace = await cluster.namespace()
    const account = { namespace, name: 'app' }
    await cluster.serviceAccount(account)
    return { account, pod: await cluster.pod(account, 'app-1') }
  }

  async function clusterTarget(params: ParamValues): Promise<TokenReviewer> {
    const prepared = kubernetes.prepare(fakeParams(params), noIssues(), fakeParseContext())
    const target = await prepared.create(fakeModuleHost())
    if (!reviewsTokens(target)) throw new Error('the target does not review tokens')
    return target
  }

  async function withMechanism(
    params: ParamValues,
    use: (begin: (bearer: string) => Promise<AuthOutcome>) => Promise<void>,
    connection: ParamValues = { url, token: adminToken, certificate: ca },
  ): Promise<void> {
    const k8s = await clusterTarget(connection)
    const given = fakeParams({
      k8sTarget: 'k8s',
      linkToDirectory: 'false',
      noMatchOU: 'oauth2',
      uidAttr: 'sub',
      ...params,
    })
    const prepared = serviceAccount.prepare(given, fakeParams({}), noIssues(), fakeParseContext())
    const on: AuthMechanism = await prepared.create(fakeModuleHost({ now: () => now, targets: { k8s } }))
    const begin = async (bearer: string): Promise<AuthOutcome> =>
      on.begin({
        request: fakeRequest({ headers: { authorization: `Bearer ${bearer}` } }),
        subject: undefined,
        root: 'o=Tremolo',
      })
    try {
      await use(begin)
    } finally {
      await k8s.close?.()
    }
  }

  const ours: ParamValues = { audience: ['gatehouse', 'gatehouse-old'] }

  test('a token for our audience and bound to a pod names its account', async () => {
    const { account, pod } = await workload()
    const token = await cluster.token(account, { audiences: ['gatehouse'], boundPod: pod, seconds: 600 })
    await withMechanism(ours, async (begin) => {
      const outcome = await begin(token)
      if (outcome.kind !== 'authenticated') throw new Error(JSON.stringify(outcome))
      const name = `system:serviceaccount:${account.namespace}:app`
      expect(outcome.subject.uid).toBe(name)
      expect(outcome.subject.attributes.toObject()).toMatchObject({
        sub: [name],
        username: [name],
        namespace: [account.namespace],
        saname: ['app'],
        'pod-name': ['app-1'],
        'pod-uid': [pod.uid],
        groups: expect.arrayContaining(['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`]),
      })
      expect(outcome.subject.attributes.first('credential-id')).toMatch(/^JTI=/)
    })
  })

  test('a token for the API server or another audience is rejected, and accepted if no audience is configured', async () => {
    const { account } = await workload()
    const forServer = await cluster.token(account)
    const forOther = await cluster.token(account, { audiences: ['gatehouse2'] })
    const forBoth = await cluster.token(account, { audiences: ['other', 'gatehouse-old'] })
    await withMechanism(ours, async (begin) => {
      expect((await begin(forServer)).kind).toBe('rejected')
      expect((await begin(forOther)).kind).toBe('rejected')
      expect((await begin(forBoth)).kind).toBe('authenticated')
    })
    await withMechanism({}, async (begin) => {
      expect((await begin(forServer)).kind).toBe('authenticated')
      expect((await begin(forOther)).kind).toBe('rejected')
    })
  })

  test('a token of a deleted pod is no longer valid', { timeout: 60_000 }, async () => {
    const { account, pod } = await workload()
    const token = await cluster.token(account, { audiences: ['gatehouse'], boundPod: pod })
    await withMechanism(ours, async (begin) => {
      expect((await begin(token)).kind).toBe('authenticated')
      await cluster.deletePod(account.namespace, pod.name)
      const refused = async (): Promise<string> => {
        now += 10_001
        return (await begin(token)).kind
      }
      await expect.poll(refused, { timeout: 45_000, interval: 500 }).toBe('rejected')
    })
  })

  test('a token of a deleted account is no longer valid, even if a new account has that name', async () => {
    const { account } = await workload()
    const token = await cluster.token(account, { audiences: ['gatehouse'] })
    await cluster.must('DELETE', `/api/v1/namespaces/${account.namespace}/serviceaccounts/app`)
    await cluster.serviceAccount(account)
    await withMechanism(ours, async (begin) => {
      await expect.poll(async () => (await begin(token)).kind, { timeout: 20_000 }).toBe('rejected')
    })
  })

  test('a user that is not a service account, a forged token and garbage are rejected', async () => {
    const { account } = await workload()
    const token = await cluster.token(account, { audiences: ['gatehouse'] })
    const [header = '', claims = '', signature = ''] = token.split('.')
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    const flipped = `${signature[0] === 'A' ? 'B' : 'A'}${signature.slice(1)}`
    const admin = Buffer.from(JSON.stringify({ sub: 'system:serviceaccount:kube-system:admin' })).toString('base64url')
    await withMechanism(ours, async (begin) => {
      for (const bad of [`${none}.${claims}.`, `${header}.${claims}.${flipped}`, `${header}.${admin}.${signature}`]) {
        expect((await begin(bad)).kind, bad).toBe('rejected')
      }
      expect((await begin(adminToken)).kind).toBe('rejected')
    })
    const k8s = await clusterTarget({ url, token: adminToken, certificate: ca })
    expect(await k8s.reviewToken(adminToken, [])).toMatchObject({ authenticated: true, username: 'admin' })
    expect(await k8s.reviewToken('nobody', [])).toMatchObject({ authenticated: false })
    await k8s.close?.()
  })

  test('reviews with a kubeconfig, and with the token of an account that may only review', async () => {
    const { account } = await workload()
    const reviewer = { namespace: account.namespace, name: 'gatehouse' }
    await cluster.serviceAccount(reviewer)
    await cluster.must('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: `reviewer-${account.namespace}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:auth-delegator' },
      subjects: [{ kind: 'ServiceAccount', ...reviewer }],
    })
    const tokenFile = join(temporaryFolder(), 'token')
    writeFileSync(tokenFile, await cluster.token(reviewer))
    const token = await cluster.token(account, { audiences: ['gatehouse'] })
    for (const connection of [{ kubeconfig }, { url, tokenFile, certificate: ca }]) {
      const accepted = async (): Promise<string> => {
        let kind = ''
        await withMechanism(
          ours,
          async (begin) => {
            kind = (await begin(token)).kind
          },
          connection,
        )
        return kind
      }
      await expect.poll(accepted, { timeout: 10_000 }).toBe('authenticated')
    }
    writeFileSync(tokenFile, await cluster.token(account))
    await withMechanism(
      ours,
      async (begin) => {
        await expect(begin(token)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
      },
      { url, tokenFile, certificate: ca },
    )
  })
})
