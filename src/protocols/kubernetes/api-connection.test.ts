import { writeFileSync } from 'node:fs'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import { OutgoingProxies } from '#protocols/http/outgoing-proxy.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { startForwardProxy } from '#testing/servers/forward-proxy.ts'
import { callApi, type KubernetesConnection, openApiServer } from './api-connection.ts'

const server = 'https://k8s.example.com:6443'
const tls = renewWebhookTls(undefined, ['k8s.example.com'], new Date())
const authority = authoritiesOf(tls)

function kubeconfig(): KubernetesConnection {
  const file = join(temporaryFolder(), 'kubeconfig')
  const cluster = { server, 'certificate-authority-data': Buffer.from(authority).toString('base64') }
  const config = {
    clusters: [{ name: 'k', cluster }],
    users: [{ name: 'u', user: { token: 'cluster-token' } }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    'current-context': 'c',
  }
  writeFileSync(file, JSON.stringify(config))
  return { kind: 'kubeconfig', file }
}

test.each<[string, () => KubernetesConnection]>([
  ['by address', () => ({ kind: 'address', url: new URL(server), authority, token: 'cluster-token' })],
  ['by a kubeconfig', kubeconfig],
])('a cluster %s is called through the proxy, which learns no token', async (_how, connection) => {
  const seen: (string | undefined)[] = []
  const options = { cert: tls.server.certificate, key: tls.server.privateKey }
  const api = https.createServer(options, ({ headers }, response) => {
    seen.push(headers.authorization, headers['proxy-authorization'])
    response.end('{}')
  })
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void api.close().closeAllConnections())
  const proxy = await startForwardProxy({ target: (api.address() as AddressInfo).port, login: 'a:b' })
  onTestFinished(() => proxy.close())
  const proxies = new OutgoingProxies({ HTTPS_PROXY: `http://a:b@127.0.0.1:${proxy.port}` })
  const opened = await openApiServer(connection(), proxies)
  onTestFinished(() => opened.close())
  const call = { url: `${server}/version`, method: 'GET', headers: {}, body: '' }
  const answer = await callApi(call, await opened.credentials(), { millis: 60_000, bytes: 1000 })
  expect(answer.status).toBe(200)
  expect(seen).toEqual(['Bearer cluster-token', undefined])
  expect(proxy.seen).toEqual(['CONNECT k8s.example.com:6443'])
})
