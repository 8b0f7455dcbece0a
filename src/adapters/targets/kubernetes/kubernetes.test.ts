import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isCluster } from '#sdk/target/kubernetes-cluster.ts'
import { reviewsTokens } from '#sdk/target/token-review.ts'
import { FakeKubernetesApi } from '#testing/kubernetes/fake-kubernetes-api.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import kubernetes, { ownCluster, parseKubernetes } from './kubernetes.ts'

let api: FakeKubernetesApi
beforeEach(async () => {
  api = await FakeKubernetesApi.start()
})
afterEach(() => api.close())

function parse(params: ParamValues) {
  const issues = noIssues()
  const config = parseKubernetes(fakeParams(params), issues, fakeParseContext())
  return { config, problems: issueTexts(issues.list) }
}

test('reviews tokens, and has no users', async () => {
  const prepared = kubernetes.prepare(fakeParams({ url: api.url, token: 't' }), noIssues(), fakeParseContext())
  const target = await prepared.create(fakeModuleHost())
  if (!reviewsTokens(target)) throw new Error('the target does not review tokens')
  expect(await target.reviewToken('unknown', [])).toMatchObject({ authenticated: false })
  await expect(target.findUser('a', [], {} as never)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  await target.close?.()
})

test('a missing file is reported when the target is created', async () => {
  const params = fakeParams({ url: api.url, token: 't', caFile: '/does/not/exist' })
  await expect(kubernetes.prepare(params, noIssues(), fakeParseContext()).create(fakeModuleHost())).rejects.toThrow(
    /ENOENT/,
  )
})

describe('parameters', () => {
  test('with a URL, and files beside the configuration', () => {
    const { config, problems } = parse({ url: 'https://k.example.com', tokenFile: 'secrets/token', caFile: 'ca.crt' })
    expect(problems).toEqual([])
    expect(config.connection).toMatchObject({
      tokenFile: '/configuration/secrets/token',
      authorityFile: '/configuration/ca.crt',
    })
  })

  test('of OpenUnison', () => {
    const legacy = parse({ url: 'https://k.example.com', useToken: 'true', tokenType: 'legacy' })
    expect(legacy.problems).toEqual([])
    expect(legacy.config.connection).toMatchObject({
      tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
      authorityFile: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
    })
    const api = parse({ url: 'https://k.example.com', tokenType: 'TOKENAPI', tokenPath: '/var/run/secrets/tokens/t' })
    expect(api.problems).toEqual([])
    expect(api.config.connection).toMatchObject({ tokenFile: '/var/run/secrets/tokens/t' })
    const own = parse({ url: 'https://kubernetes.default.svc', useToken: 'true', label: 'Here', timeout: '30000' })
    expect(own.problems).toEqual([])
    expect(own.config).toMatchObject({
      label: 'Here',
      timeoutMillis: 30_000,
      connection: { tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token' },
    })
    const pem = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'
    const certificate = Buffer.from(pem).toString('base64')
    expect(parse({ url: 'https://k.example.com', token: 't', certificate }).config.connection).toMatchObject({
      authority: pem,
    })
  })

  test.each<[ParamValues, RegExp]>([
    [{}, /one of "url", "kubeconfig" and "inCluster" is required/],
    [{ url: 'http://k.example.com', token: 't' }, /this machine only/],
    [{ url: 'https://k.example.com' }, /"token" or "tokenFile" is required/],
    [{ url: 'https://k.example.com', token: 't', userName: 'u' }, /"userName" is not supported/],
    [{ url: 'https://k.example.com', token: 't', useToken: 'false' }, /passwords are not supported/],
    [{ url: 'https://k.example.com', token: 't', tokenFile: 'f' }, /beside a token file/],
    [{ url: 'https://k.example.com', token: 't', kubeconfig: 'f' }, /"kubeconfig" cannot be given beside "url"/],
    [{ inCluster: 'true', token: 't' }, /"token" belongs to "url"/],
    [{ kubeconfig: 'c', caFile: 'f' }, /"caFile" belongs to "url"/],
    [{ url: 'https://k.example.com', token: 't', context: 'c' }, /"context" belongs to "kubeconfig"/],
    [{ url: 'https://k.example.com', token: 't', tokenType: 'vault' }, /must be one of STATIC/],
    [{ url: 'https://k.example.com', tokenType: 'oidc', oidcSub: 's', oidcAudience: 'a' }, /"oidcIdp" is required/],
    [
      { url: 'https://k.example.com', token: 't', tokenType: 'oidc', oidcIdp: 'i', oidcSub: 's', oidcAudience: 'a' },
      /"token" cannot be given where tokenType is "OIDC"/,
    ],
    [{ url: 'https://k.example.com', token: 't', timeout: 'soon' }, /"timeout" must be a whole number/],
    [{ url: 'https://k.example.com', token: 't', gitUrl: 'git@x' }, /"gitUrl" is not used/],
  ])('%j is rejected', (params, problem) => {
    expect(parse(params).problems).toEqual([expect.stringMatching(problem)])
  })
})

test('the cluster of this process is opened on first use, and its absence is said', async () => {
  const target = await ownCluster.create(fakeModuleHost())
  if (!isCluster(target)) throw new Error('the target is not a cluster')
  await expect(target.objects.servedKind('v1', 'Namespace')).rejects.toMatchObject({
    code: 'TARGET_FAILED',
    message: expect.stringContaining('does not run in a cluster'),
  })
  await target.close?.()
})

test('tokens of an own identity provider are issued for the calls, and renewed before they expire', async () => {
  let now = 1_800_000_000_000
  const issued: unknown[] = []
  const serviceToken = async (call: unknown) => {
    issued.push(call)
    return { token: `issued-${issued.length}`, expires: new Date(now + 60_000) }
  }
  const params = { url: api.url, tokenType: 'oidc', oidcIdp: 'remote', oidcSub: 'control-plane', oidcAudience: 'k' }
  const prepared = kubernetes.prepare(fakeParams(params), noIssues(), fakeParseContext())
  const host = { ...fakeModuleHost({ now: () => now }), issuers: { serviceToken } }
  const target = await prepared.create(host as unknown as Parameters<typeof prepared.create>[0])
  if (!reviewsTokens(target)) throw new Error('the target does not review tokens')
  for (const later of [0, 30_000, 50_000]) {
    now = 1_800_000_000_000 + later
    await target.reviewToken('x', [])
  }
  expect(api.calls.map(({ authorization }) => authorization)).toEqual([
    'Bearer issued-1',
    'Bearer issued-1',
    'Bearer issued-2',
  ])
  expect(issued[0]).toEqual({ issuer: 'remote', subject: 'control-plane', audience: 'k' })
  await target.close?.()
})
