import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { silentLogger } from '#kernel/logger.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { createOperationsApp } from '#server/operations.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate, testServerKey } from '#testing/gateway/test-certificates.ts'
import { networkOf } from './connections.ts'
import { type ConnectionLimits, defaultConnectionLimits, limitListeners } from './http-limits.ts'
import { createListener } from './http-server.ts'
import { TrustedProxies } from './trusted-proxies.ts'

interface Options {
  readonly limits?: Partial<ConnectionLimits>
  readonly proxies?: readonly string[]
  readonly tls?: boolean
  readonly handler?: (request: IncomingMessage, response: ServerResponse) => void
}

/** `/hold` is answered when the test says so, everything else at once. */
async function listen({ limits, proxies = [], tls = false, handler }: Options = {}) {
  const metrics = createMetrics()
  const warnings: LogFields[] = []
  const log: Logger = { ...silentLogger, warn: (_message, fields) => void warnings.push(fields ?? {}) }
  const seen: string[] = []
  const pending: ServerResponse[] = []
  const server = createListener(
    {
      listener: 'public',
      limits: { ...defaultConnectionLimits, ...limits },
      proxies: new TrustedProxies(proxies),
      meter: metrics.connections,
      log,
    },
    tls ? { cert: testServerCertificate, key: testServerKey } : undefined,
    (request, response) => {
      seen.push(request.url ?? '')
      if (handler !== undefined) handler(request, response)
      else if (request.url === '/hold') pending.push(response)
      else response.end(`saw ${request.url}`)
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    seen,
    pending,
    warnings,
    open: () => promisify(server.getConnections.bind(server))(),
    metric: (line: string) => until(async () => (await metrics.registry.metrics()).includes(line), long),
  }
}

/** A client that keeps its side open even after the server closes. */
function client(port: number, text = '', localAddress = '127.0.0.1') {
  const socket: Socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
  let answer = ''
  let ended = false
  socket.on('data', (chunk) => {
    answer += chunk.toString()
  })
  socket.on('end', () => {
    ended = true
  })
  socket.on('close', () => {
    ended = true
  })
  socket.on('error', () => {})
  if (text !== '') socket.write(text)
  onTestFinished(() => void socket.destroy())
  return { socket, answer: () => answer, ended: () => ended }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const long = 15_000

test.each([
  ['nothing', ''],
  ['half a header', 'GET / HTTP/1.1\r\nHos'],
  ['half a body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf'],
  ['half a second header', `${get('/first')}GET / HTTP/1.1\r\nHos`],
])('a connection that sent %s gets 408 and is destroyed, even if the client keeps it open', async (_what, text) => {
  const limits = { headerSeconds: 1, requestSeconds: 1 }
  const { port, open, metric } = await listen({
    limits,
    handler: (request, response) => request.url !== '/' && response.end('ok'),
  })
  const { answer, ended } = client(port, text)
  await until(async () => ended(), long)
  expect(answer()).toContain('HTTP/1.1 408 Request Timeout')
  await until(async () => (await open()) === 0, long)
  await metric('gatehouse_connections_open{listener="public"} 0')
  await metric('gatehouse_connections_refused_total{listener="public",reason="timeout"} 1')
})

test('a request that is completed after its 408 is not executed', async () => {
  const { port, seen, open } = await listen({ limits: { headerSeconds: 1 } })
  const { socket, answer } = client(port, 'GET /late HTTP/1.1\r\nHost: a\r\n')
  await until(async () => answer().includes('408'), long)
  socket.write('\r\n')
  await until(async () => (await open()) === 0, long)
  expect(seen).toEqual([])
})

test('one connection runs 16 requests at a time, and ends after the 429 for one more', async () => {
  const { port, seen, pending, open, metric } = await listen()
  const { answer } = client(port, get('/hold').repeat(100))
  await metric('gatehouse_connections_refused_total{listener="public",reason="pipelined"} 1')
  expect(seen).toHaveLength(16)
  for (const response of pending) response.end('held')
  await until(async () => (await open()) === 0, long)
  expect(answer().match(/(?<=HTTP\/1.1 )\d+/g)).toEqual([...Array(16).fill('200'), '429'])
})

test('text that is not HTTP gets 400, and the connection is destroyed', async () => {
  const { port, open, metric } = await listen()
  const { answer, ended } = client(port, 'hello\r\n\r\n')
  await until(async () => ended(), long)
  expect(answer()).toMatch(/^HTTP\/1.1 400 /)
  await metric('gatehouse_connections_refused_total{listener="public",reason="malformed"} 1')
  await until(async () => (await open()) === 0, long)
})

test('a body with broken chunks after the response began ends with a destroyed socket, not with a second response', async () => {
  const { port, open } = await listen({ handler: (_request, response) => void response.write('begun') })
  const { answer, socket } = client(port, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  await until(async () => answer().includes('begun'), long)
  socket.write('zz\r\n')
  await until(async () => (await open()) === 0, long)
  expect(answer().match(/HTTP\/1.1/g)).toHaveLength(1)
})

test('at the limit, a new connection replaces the oldest that sent no request', async () => {
  const { port, open, warnings, metric } = await listen({ limits: { total: 3 } })
  const oldest = client(port)
  await until(async () => (await open()) === 1, long)
  const next = client(port, 'GET / HT')
  await until(async () => (await open()) === 2, long)
  const working = client(port, get('/hold'))
  await until(async () => (await open()) === 3, long)
  const fresh = client(port, get('/fresh'))
  await until(async () => fresh.answer().includes('saw /fresh'), long)
  await until(async () => oldest.ended(), long)
  expect([next.ended(), working.ended()]).toEqual([false, false])
  expect(await open()).toBe(3)
  await metric('gatehouse_connections_refused_total{listener="public",reason="total"} 1')
  for (let i = 0; i < 5; i++) client(port)
  await until(async () => next.ended() && fresh.ended(), long)
  expect(working.ended()).toBe(false)
  expect(warnings).toEqual([expect.objectContaining({ listener: 'public', refusedByTotal: 1, openLimit: 3 })])
})

test('an idle connection is closed before an active one, and does not count as refused', async () => {
  const { port, open, pending, warnings } = await listen({ limits: { total: 2 } })
  const idle = client(port, get('/done'))
  await until(async () => idle.answer().includes('saw /done'), long)
  const working = client(port, get('/hold'))
  await until(async () => pending.length === 1, long)
  const fresh = client(port, get('/fresh'))
  await until(async () => fresh.answer().includes('saw /fresh'), long)
  await until(async () => idle.ended(), long)
  pending[0]?.end('kept')
  await until(async () => working.answer().includes('kept'), long)
  expect(await open()).toBe(2)
  expect(warnings).toEqual([])
})

test('if all are active, others get 503, health checks are answered, and the work is done', async () => {
  const { port, pending, seen, metric } = await listen({ limits: { total: 2 } })
  const working = [client(port, get('/hold')), client(port, get('/hold'))]
  await until(async () => pending.length === 2, long)
  const other = client(port, get('/other'))
  await until(async () => other.ended(), long)
  expect(other.answer()).toMatch(/^HTTP\/1.1 503 [\s\S]*retry-after: 1[\s\S]*"TOO_MANY_CONNECTIONS"/)
  // Half-open connections beyond the limit do not block health checks either.
  for (let i = 0; i < 100; i++) client(port)
  for (const path of ['/check_alive', '/ready?x=1']) {
    const probe = client(port, get(path))
    await until(async () => probe.ended(), long)
    expect(probe.answer()).toMatch(/^HTTP\/1.1 200 [\s\S]*Connection: close[\s\S]*saw /)
  }
  expect(seen).toEqual(['/hold', '/hold', '/check_alive', '/ready?x=1'])
  for (const response of pending) response.end('done')
  await until(async () => working.every(({ answer }) => answer().includes('done')), long)
  await metric('gatehouse_connections_refused_total{listener="public",reason="total"}')
})

test("one address can't use up the connections of others, and a trusted proxy has no limit of its own", async () => {
  const { port, open, pending, metric } = await listen({ limits: { total: 10, perAddress: 2 }, proxies: ['127.0.0.9'] })
  const other = client(port, '', '127.0.0.2')
  await until(async () => (await open()) === 1, long)
  const proxied = Array.from({ length: 4 }, () => client(port, get('/hold'), '127.0.0.9'))
  await until(async () => pending.length === 4, long)
  const many = Array.from({ length: 20 }, () => client(port, '', '127.0.0.3'))
  await until(async () => many.filter(({ ended }) => ended()).length === 18, long)
  await until(async () => (await open()) === 7, long)
  expect([other, ...proxied].map(({ ended }) => ended())).toEqual([false, false, false, false, false])
  await metric('gatehouse_connections_refused_total{listener="public",reason="address"} 18')
})

test('a stalled handshake is ended, by time or to make room', async () => {
  const { port, open, seen } = await listen({ tls: true, limits: { total: 2, headerSeconds: 1 } })
  const silent = [client(port), client(port, '\x16\x03\x01')]
  await until(async () => (await open()) === 2, long)
  const secure = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  onTestFinished(() => void secure.destroy())
  let answer = ''
  secure.on('data', (chunk) => {
    answer += chunk.toString()
  })
  secure.write(get('/secure'))
  await until(async () => answer.includes('saw /secure'), long)
  await until(async () => silent.every(({ ended }) => ended()), long)
  expect(silent.map((each) => each.answer())).toEqual(['', ''])
  expect(seen).toEqual(['/secure'])
  expect(await open()).toBe(1)
})

test('half a header over TLS gets 408, and the connection is destroyed', async () => {
  const { port, open } = await listen({ tls: true, limits: { headerSeconds: 1 } })
  const secure = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  onTestFinished(() => void secure.destroy())
  let answer = ''
  secure.on('data', (chunk) => {
    answer += chunk.toString()
  })
  secure.write('GET / HTTP/1.1\r\nHos')
  await until(async () => answer.includes('HTTP/1.1 408'), long)
  await until(async () => (await open()) === 0, long)
})

test('more than 100 headers are rejected, not dropped', async () => {
  const { port, seen } = await listen()
  const headers = (count: number) =>
    `GET / HTTP/1.1\r\nHost: a\r\n${Array.from({ length: count - 1 }, (_, i) => `x${i}: y\r\n`).join('')}\r\n`
  const [most, tooMany] = [client(port, headers(100)), client(port, headers(101))]
  await until(async () => tooMany.ended() && most.answer() !== '', long)
  expect(most.answer()).toMatch(/^HTTP\/1.1 200 /)
  expect(tooMany.answer()).toMatch(/^HTTP\/1.1 431 [\s\S]*HEADERS_TOO_LARGE/)
  expect(seen).toEqual(['/'])
})

test('the operators’ listener also closes half-open connections', async () => {
  const limits = { ...defaultConnectionLimits, headerSeconds: 1 }
  const { registry, connections: meter } = createMetrics()
  const health = async () => ({ status: 'up', gateway: { health: 'up' }, targets: [], issuers: [] }) as const
  const operations = { metrics: () => registry, ready: async () => {}, health }
  const app = createOperationsApp({ operations, limits, meter, log: silentLogger })
  await app.listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => app.close())
  const { answer, ended } = client((app.server.address() as AddressInfo).port, 'GET /metrics HTTP/1.1\r\n')
  await until(async () => ended(), long)
  expect(answer()).toMatch(/^HTTP\/1.1 408 /)
  await until(async () => (await promisify(app.server.getConnections.bind(app.server))()) === 0, long)
})

test('an address of IPv6 counts as its /64 network', () => {
  expect(networkOf('10.1.2.3')).toBe('10.1.2.3')
  expect(networkOf('::ffff:10.1.2.3')).toBe('10.1.2.3')
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:db8:1:2::9')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:db8::9')).toBe('2001:db8:0:0::/64')
  expect(networkOf('::1')).toBe('0:0:0:0::/64')
  expect(networkOf('fe80::1%eth0')).toBe('fe80:0:0:0::/64')
})

test('connections fit into the files that the process may open', () => {
  const warnings: string[] = []
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
  expect(limitListeners(undefined, log, 20_000).public).toEqual(defaultConnectionLimits)
  expect(warnings).toEqual([])
  const few = limitListeners(undefined, log, 1024)
  expect([few.public.total, few.public.perAddress, few.operations.total, few.webhook.total]).toEqual([
    384, 384, 128, 256,
  ])
  expect(warnings).toEqual(['fewer connections than configured: the process may not open enough files'])
})
