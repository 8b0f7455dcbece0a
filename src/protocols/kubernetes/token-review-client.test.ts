import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { inClusterConnection, type KubernetesConnection } from '#protocols/kubernetes/api-connection.ts'
import { createTokenReviewClient, type TokenReviewClient } from '#protocols/kubernetes/token-review-client.ts'
import { testServerCertificate, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import { FakeKubernetesApi } from '#testing/kubernetes/fake-kubernetes-api.ts'

const account = {
  username: 'system:serviceaccount:ns:app',
  uid: 'u-1',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
  extra: { 'authentication.kubernetes.io/pod-name': ['app-1'] },
  audiences: ['gatehouse'],
}
const unreachable = { code: 'TARGET_UNREACHABLE', status: 503, retryAfter: 2 }

let api: FakeKubernetesApi
let folder: string
const clients: TokenReviewClient[] = []

beforeEach(async () => {
  api = await FakeKubernetesApi.start()
  api.tokens.set('good', account)
  folder = await mkdtemp(join(tmpdir(), 'kubernetes-'))
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await api.close()
  await rm(folder, { recursive: true })
})

async function client(more: { token?: string; tokenFile?: string } = { token: 'own' }, timeoutMillis = 2_000) {
  const made = await createTokenReviewClient({ kind: 'address', url: new URL(api.url), ...more }, { timeoutMillis })
  clients.push(made)
  return made
}

describe('a review', () => {
  test('sends token, audiences and our own credential, and reads the response', async () => {
    const review = await (await client()).review('good', ['gatehouse', 'x'])
    expect(review).toEqual({
      authenticated: true,
      error: undefined,
      username: account.username,
      uid: 'u-1',
      groups: account.groups,
      extra: new Map([['authentication.kubernetes.io/pod-name', ['app-1']]]),
      audiences: ['gatehouse'],
    })
    expect(api.calls).toEqual([{ token: 'good', audiences: ['gatehouse', 'x'], authorization: 'Bearer own' }])
  })

  test('requests no audiences if none are given', async () => {
    await (await client()).review('good', [])
    expect(api.calls[0]?.audiences).toBeUndefined()
  })

  test('of a bad token or another audience is a result', async () => {
    const reviewer = await client()
    expect(await reviewer.review('bad', [])).toMatchObject({
      authenticated: false,
      error: expect.stringMatching(/invalid/),
    })
    expect(await reviewer.review('good', ['other'])).toMatchObject({ authenticated: false, audiences: [] })
  })

  test('keeps its connection', async () => {
    const reviewer = await client()
    for (let i = 0; i < 5; i++) await reviewer.review('good', [])
    expect(api.sockets).toBe(1)
  })

  test('reads the token file again when it changes', async () => {
    const tokenFile = join(folder, 'token')
    await writeFile(tokenFile, 'first\n')
    const reviewer = await client({ tokenFile })
    await reviewer.review('good', [])
    await writeFile(tokenFile, 'second one\n')
    await reviewer.review('good', [])
    expect(api.calls.map((call) => call.authorization)).toEqual(['Bearer first', 'Bearer second one'])
  })
})

describe('no review', () => {
  test.each([400, 401, 403, 429, 500, 503])('when the server answers %i', async (status) => {
    api.override = (_request, response) => void response.writeHead(status).end('{"kind":"Status"}')
    await expect((await client()).review('good', [])).rejects.toMatchObject(unreachable)
  })

  test.each([301, 302, 307, 308])(
    'when the server redirects with %i, and the token is sent nowhere',
    async (status) => {
      const other = await FakeKubernetesApi.start()
      other.tokens.set('good', account)
      const location = `${other.url}/apis/authentication.k8s.io/v1/tokenreviews`
      api.override = (_request, response) => void response.writeHead(status, { location }).end()
      await expect((await client()).review('good', [])).rejects.toMatchObject(unreachable)
      expect(other.calls).toEqual([])
      await other.close()
    },
  )

  test.each<[string, string]>([
    ['no JSON', '{"kind": "TokenReview", '],
    ['nothing', ''],
    ['another object', '{"kind":"Status","status":"Failure"}'],
    ['no status', '{"kind":"TokenReview"}'],
    ['null', 'null'],
    ['too much', JSON.stringify({ kind: 'TokenReview', status: { error: 'x'.repeat(300_000) } })],
  ])('when the response is %s', async (_case, body) => {
    api.override = (_request, response) =>
      void response.writeHead(201, { 'content-type': 'application/json' }).end(body)
    await expect((await client()).review('good', [])).rejects.toMatchObject(unreachable)
  })

  test('when the server hangs, before or during its response', async () => {
    const reviewer = await client({ token: 'own' }, 150)
    api.override = () => {}
    await expect(reviewer.review('good', [])).rejects.toMatchObject(unreachable)
    api.override = (_request, response) => void response.writeHead(201).write('{')
    await expect(reviewer.review('good', [])).rejects.toMatchObject(unreachable)
  })

  test('when nothing listens; the error does not contain the token', async () => {
    const reviewer = await client()
    await api.close()
    const error = await reviewer.review('very-secret', []).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(unreachable)
    expect(`${error} ${(error as Error).cause}`).not.toContain('very-secret')
    api = await FakeKubernetesApi.start()
  })

  test('values of the wrong type count as absent', async () => {
    const status = {
      authenticated: 'true',
      user: { username: 7, groups: [7], extra: { a: [1, 'b'] } },
      audiences: [{}],
    }
    api.override = (_request, response) =>
      void response
        .writeHead(201, { 'content-type': 'application/json' })
        .end(JSON.stringify({ kind: 'TokenReview', status }))
    expect(await (await client()).review('good', [])).toMatchObject({
      authenticated: false,
      username: '',
      groups: [],
      extra: new Map([['a', ['b']]]),
      audiences: [],
    })
  })
})

describe('a kubeconfig', () => {
  const write = async (cluster: string, user = 'token: abc') => {
    const file = join(folder, 'config')
    await writeFile(
      file,
      `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: k, user: u } }]
clusters: [{ name: k, cluster: { ${cluster} } }]
users: [{ name: u, user: { ${user} } }]
`,
    )
    return createTokenReviewClient({ kind: 'kubeconfig', file }, { timeoutMillis: 100 })
  }

  test('that does not verify the server is rejected', async () => {
    await expect(write('server: "https://127.0.0.1:1", insecure-skip-tls-verify: true')).rejects.toThrow(/skip/)
    await expect(write('server: "http://127.0.0.1:1"')).rejects.toThrow(/https/)
    await expect(write('server: "https://127.0.0.1:1"', 'username: a, password: b')).rejects.toThrow(/password/)
  })

  test('or a CA that is a named pipe is rejected without waiting for a writer', async () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const url = new URL('https://127.0.0.1:1')
    for (const connection of [
      { kind: 'kubeconfig', file: pipe } as const,
      { kind: 'address', url, token: 'own', authorityFile: pipe } as const,
    ]) {
      const opened = createTokenReviewClient(connection, { timeoutMillis: 100 })
      await expect(opened).rejects.toThrow('pipe is not a file')
    }
  })

  test('is used otherwise', async () => {
    const reviewer = await write('server: "https://127.0.0.1:1"')
    await expect(reviewer.review('good', [])).rejects.toMatchObject(unreachable)
    reviewer.close()
  })
})

describe('an https server', () => {
  let secure: FakeKubernetesApi
  beforeEach(async () => {
    secure = await FakeKubernetesApi.start('https')
    secure.tokens.set('good', account)
  })
  afterEach(() => secure.close())

  async function review(connection: KubernetesConnection) {
    const made = await createTokenReviewClient(connection, { timeoutMillis: 2_000 })
    clients.push(made)
    return made.review('good', [])
  }

  test('is called if its CA is known', async () => {
    secure.tokens.set('good', { ...account, audiences: ['https://kubernetes.default.svc'] })
    const authorityFile = join(folder, 'ca.crt')
    await writeFile(authorityFile, testServerCertificate)
    const url = new URL(secure.url)
    const kubeconfig = join(folder, 'config')
    await writeFile(
      kubeconfig,
      JSON.stringify({
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
        clusters: [{ name: 'k', cluster: { server: secure.url, 'certificate-authority': authorityFile } }],
        users: [{ name: 'u', user: { token: 'own' } }],
      }),
    )
    for (const connection of [
      { kind: 'address', url, token: 'own', authority: testServerCertificate },
      { kind: 'address', url, token: 'own', authorityFile },
      { kind: 'kubeconfig', file: kubeconfig },
    ] as const) {
      expect(await review(connection)).toMatchObject({ authenticated: true })
    }
    expect(secure.calls.map((call) => call.authorization)).toEqual(['Bearer own', 'Bearer own', 'Bearer own'])
  })

  test('of an unknown CA gets neither token', async () => {
    const url = new URL(secure.url)
    for (const authority of [undefined, unrelatedCertificate]) {
      await expect(review({ kind: 'address', url, token: 'own', authority })).rejects.toMatchObject(unreachable)
    }
    expect(secure.calls).toEqual([])
  })
})

test('outside of a cluster there is no connection of the pod', () => {
  expect(() => inClusterConnection({})).toThrow(/KUBERNETES_SERVICE_HOST/)
  expect(inClusterConnection({ KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }).url.href).toBe(
    'https://[fd00::1]/',
  )
})
