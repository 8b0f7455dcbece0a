import { once } from 'node:events'
import { createServer } from 'node:http'
import https from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { inspect } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import { unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import { type ForwardProxy, type ProxyBehavior, startForwardProxy } from '#testing/servers/forward-proxy.ts'
import { exchange, type HttpPool, openHttpPool, wasNotSent } from './http-client.ts'
import { OutgoingProxies } from './outgoing-proxy.ts'

const named = (proxies: OutgoingProxies, url: string): string | undefined => proxies.find(new URL(url))?.name

test('each scheme has its proxy, and lower case counts before upper case', () => {
  const proxies = new OutgoingProxies({
    HTTPS_PROXY: 'http://unused.example.com:1',
    https_proxy: 'http://user:secret@secure.example.com:3128',
    HTTP_PROXY: 'plain.example.com:8080',
    http_proxy: '',
  })
  expect(named(proxies, 'https://api.example.com')).toBe('http://secure.example.com:3128')
  expect(named(proxies, 'http://api.example.com')).toBe('http://plain.example.com:8080')
  expect(proxies.describe()).toBe(
    'Outgoing calls: https: through http://secure.example.com:3128 (https_proxy), http: through http://plain.example.com:8080 (HTTP_PROXY).',
  )
  const empty = new OutgoingProxies({ https_proxy: '', HTTPS_PROXY: 'proxy.example.com', HTTP_PROXY: '' })
  expect(empty.describe()).toBe(
    'Outgoing calls: https: through http://proxy.example.com (HTTPS_PROXY), http: directly.',
  )
  expect(new OutgoingProxies({}).describe()).toBeUndefined()
  expect(named(new OutgoingProxies({ HTTPS_PROXY: 'proxy' }), 'http://api.example.com')).toBeUndefined()
})

test.each(['https://localhost:1', 'https://a.localhost', 'https://127.0.0.1', 'https://127.9.9.9:80', 'https://[::1]'])(
  'a call to %s stays on this machine',
  (url) => {
    const proxies = new OutgoingProxies({ https_proxy: 'http://proxy:3128' })
    expect(named(proxies, url)).toBeUndefined()
  },
)

test.each([
  ['*', ['https://api.example.com', 'https://10.1.2.3'], []],
  [
    'example.com',
    ['https://example.com', 'https://EXAMPLE.com.', 'https://a.b.example.com:8443'],
    ['https://myexample.com'],
  ],
  ['.example.com', ['https://a.example.com'], ['https://example.com', 'https://aexample.com']],
  ['*.example.com', ['https://a.example.com'], ['https://example.com']],
  ['Example.COM:8443', ['https://a.example.com:8443'], ['https://example.com', 'https://example.com:84']],
  ['example.com:443', ['https://example.com'], ['https://example.com:8443']],
  ['10.1.2.3', ['https://10.1.2.3:6443'], ['https://10.1.2.33', 'https://ip-10.1.2.3.example.com']],
  ['10.1.2.3:6443', ['https://10.1.2.3:6443'], ['https://10.1.2.3']],
  ['10.0.0.0/8', ['https://10.255.0.1'], ['https://11.0.0.1', 'https://10.example.com']],
  ['fd00::/8', ['https://[fd00::1]:6443'], ['https://[fe80::1]']],
  ['fd00::1', ['https://[fd00:0::1]'], ['https://[fd00::2]']],
  ['[fd00::1]:6443', ['https://[fd00::1]:6443'], ['https://[fd00::1]']],
  ['a.test, b.test  c.test', ['https://a.test', 'https://b.test', 'https://c.test'], ['https://d.test']],
  ['10.0.0.0/33,,fd00::/129', [], ['https://10.0.0.0', 'https://api.example.com']],
])('NO_PROXY=%s', (noProxy, direct, proxied) => {
  const proxies = new OutgoingProxies({ https_proxy: 'http://proxy:3128', NO_PROXY: noProxy })
  for (const url of direct) expect(named(proxies, url), url).toBeUndefined()
  for (const url of proxied) expect(named(proxies, url), url).toBe('http://proxy:3128')
})

const form = 'use http://HOST:PORT or https://HOST:PORT, such as http://proxy.example.com:3128'
const notProxy = `HTTPS_PROXY is not the address of a proxy; ${form}`
const notProxyWithoutScheme = `HTTPS_PROXY has no http:// or https:// in front, and is not HOST:PORT either; ${form}`

test.each<readonly [string, string]>([
  ['socks5://user:secret@proxy:1080', 'HTTPS_PROXY names a proxy of the kind socks5:; use an http: or https: proxy'],
  ['http://user:secret@', notProxy],
  ['http://user:secret@proxy:99999', notProxy],
  ...['user:se#cret@proxy', 'proxy.example.com:port', 'http:proxy:3128', 'socks5:proxy:1080', ':3128'].map(
    (value) => [value, notProxyWithoutScheme] as const,
  ),
  ['http://user:secret%zz@proxy', 'HTTPS_PROXY has a user name or password that is not URL-encoded'],
])('%s can not be a proxy', (value, message) => {
  expect(() => new OutgoingProxies({ HTTPS_PROXY: value })).toThrow(new Error(message))
})

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

const tls = renewWebhookTls(undefined, ['api.example.com'], new Date())
const server = 'https://api.example.com'
const login = 'us er:se:cret'

/** A server by https with a certificate for `server`. */
async function startServer(): Promise<{ readonly port: number; readonly connections: () => number }> {
  let connections = 0
  const options = { cert: tls.server.certificate, key: tls.server.privateKey }
  const secure = https.createServer(options, (request, response) => {
    const { method, url, headers } = request
    response.end(JSON.stringify({ method, url, host: headers.host, login: headers['proxy-authorization'] }))
  })
  secure.on('secureConnection', () => connections++)
  onTestFinished(() => secure.closeAllConnections())
  return { port: await listening(secure), connections: () => connections }
}

async function proxyTo(target: number, more: Omit<ProxyBehavior, 'target'> = {}): Promise<ForwardProxy> {
  const proxy = await startForwardProxy({ target, ...more })
  onTestFinished(() => proxy.close())
  return proxy
}

function poolThrough(port: number, { userinfo = '', maxSockets = 32, ca = authoritiesOf(tls) } = {}): HttpPool {
  const address = `http://${userinfo}127.0.0.1:${port}`
  const proxies = new OutgoingProxies({ https_proxy: address, http_proxy: address })
  const pool = openHttpPool(ca, { maxSockets, maxFreeSockets: maxSockets }, proxies)
  onTestFinished(() => pool.close())
  return pool
}

const limits = (millis = 60_000) => ({ signal: AbortSignal.timeout(millis), bytes: 10_000 })
const get = (url: string) => ({ method: 'GET', url: new URL(url), headers: {} })
const failureOf = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error) => error as Error,
  )
/** Everything that a log could show of an error. */
const shown = (error: Error): string => inspect(error, { depth: 9, showHidden: true })

test('calls by https share tunnels, and only the proxy gets its password', async () => {
  const { port, connections } = await startServer()
  const proxy = await proxyTo(port, { login })
  const pool = poolThrough(proxy.port, { userinfo: 'us%20er:se%3Acret@', maxSockets: 2 })
  const paths = Array.from({ length: 20 }, (_, i) => `/a/../${i}?q=${'x'.repeat(i * 500)}`)
  const answers = await Promise.all(
    paths.map((path) => pool.send({ ...get(server), path }, { ...limits(), bytes: 30_000 })),
  )
  const seen = answers.map(({ body }) => JSON.parse(body))
  expect(seen).toEqual(paths.map((url) => ({ method: 'GET', url, host: 'api.example.com' })))
  expect(connections()).toBe(2)
  expect(proxy.seen).toEqual(['CONNECT api.example.com:443', 'CONNECT api.example.com:443'])
})

test('a long body passes a tunnel in both directions', async () => {
  const options = { cert: tls.server.certificate, key: tls.server.privateKey }
  const secure = https.createServer(options, (request, response) => void request.pipe(response))
  const proxy = await proxyTo(await listening(secure))
  const body = 'long '.repeat(1_000_000)
  const call = { ...get(server), method: 'POST', body }
  const answer = await poolThrough(proxy.port).send(call, { ...limits(), bytes: 6_000_000 })
  expect(answer.body === body).toBe(true)
})

test('a call without kept connections gets a tunnel of its own', async () => {
  const { port } = await startServer()
  const proxy = await proxyTo(port)
  const proxies = new OutgoingProxies({ HTTPS_PROXY: `127.0.0.1:${proxy.port}` })
  const answer = await exchange(get(server), { ca: authoritiesOf(tls), proxies }, limits())
  expect(answer.status).toBe(200)
  expect(proxy.seen).toEqual(['CONNECT api.example.com:443'])
})

test.each([
  ['another name than in its certificate', 'https://other.example.com', {}, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['a certificate of another authority', server, { ca: unrelatedCertificate }, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
])('a server with %s is refused through a proxy too', async (_what, url, options, code) => {
  const { port } = await startServer()
  const proxy = await proxyTo(port)
  const error = await failureOf(poolThrough(proxy.port, options).send(get(url), limits()))
  expect(error).toMatchObject({ code })
  expect(wasNotSent(error)).toBe(true)
})

test('a call by http is sent to the proxy with the whole URL', async () => {
  const plain = createServer((request, response) => {
    response.end(JSON.stringify({ url: request.url, headers: request.headers }))
  })
  const proxy = await proxyTo(await listening(plain), { login })
  const pool = poolThrough(proxy.port, { userinfo: 'us%20er:se%3Acret@' })
  const call = { ...get('http://api.example.com:81/x'), path: '/a/../b?c' }
  const answer = await pool.send(call, limits())
  expect(proxy.seen).toEqual(['GET http://api.example.com:81/a/../b?c'])
  expect(JSON.parse(answer.body).headers).toMatchObject({ host: 'api.example.com:81' })
})

const never = 'HTTP/1.1 200 Fine\r\n'
test.each([
  ['wants a login', { login }, /^the proxy .+: it wants another user name or password \(407\)$/],
  ['refuses the connection', { refusal: 403 }, /^the proxy .+: it answered 403$/],
  ['sends garbage', 'SSH-2.0-OpenSSH_9.2\r\n', /^the proxy .+: Parse Error/],
  ['never ends its answer', `${never}${'X-A: b\r\n'.repeat(9000)}`, /^the proxy .+: Parse Error: Header overflow/],
  ['hangs up', '', /^the proxy .+: socket hang up$/],
])('an error names a proxy that %s, without its password', async (_what, behavior, message) => {
  const hostile = createTcpServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end(String(behavior)))
  })
  const port = typeof behavior === 'string' ? await listening(hostile) : (await proxyTo(1, behavior)).port
  const pool = poolThrough(port, { userinfo: 'gatehouse:hunter2@' })
  const error = await failureOf(pool.send(get(server), limits()))
  expect(error.message).toMatch(message)
  expect(error.message).toContain(`the proxy http://127.0.0.1:${port} opened no connection to api.example.com:443`)
  expect(shown(error)).not.toMatch(/hunter2|Basic /)
  expect(wasNotSent(error)).toBe(true)
})

test.each([server, 'http://api.example.com'])('a proxy that nobody runs is an error of %s', async (url) => {
  const gone = createTcpServer()
  const port = await listening(gone)
  await new Promise((resolve) => gone.close(resolve))
  const error = await failureOf(poolThrough(port, { userinfo: 'gatehouse:hunter2@' }).send(get(url), limits()))
  expect(error.message).toContain(`the proxy http://127.0.0.1:${port} `)
  expect(error.message).toContain('ECONNREFUSED')
  expect(shown(error)).not.toMatch(/hunter2|Basic /)
  expect(wasNotSent(error)).toBe(true)
})

test('a call by http that a proxy does not let pass was not sent', async () => {
  const proxy = await proxyTo(1, { login })
  const error = await failureOf(poolThrough(proxy.port).send(get('http://api.example.com'), limits()))
  expect(error.message).toBe(`the proxy http://127.0.0.1:${proxy.port} wants another user name or password (407)`)
  expect(wasNotSent(error)).toBe(true)
})

test('a proxy that hangs holds a call no longer than its time, and no connection', async () => {
  const sockets = new Set<Socket>()
  const hanging = createTcpServer((socket) => sockets.add(socket.on('error', () => {}).resume()))
  const pool = poolThrough(await listening(hanging), { maxSockets: 1 })
  const [first, second] = await Promise.all([
    failureOf(pool.send(get(server), limits(300))),
    failureOf(pool.send(get(server), limits(300))),
  ])
  expect(first.message).toMatch(/^the proxy http:.+ had not connected when the call was ended$/)
  expect(wasNotSent(first) && wasNotSent(second)).toBe(true)
  // Not more than the pool may have.
  expect(sockets.size).toBeLessThan(3)
  for (const socket of sockets) if (!socket.destroyed) await once(socket, 'close')
})
