import { once } from 'node:events'
import http from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Dn } from '#identity/dn.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { type ConnectionLimits, defaultConnectionLimits, httpLimits } from '#requests/listener/http-limits.ts'
import { securityHeaders } from '#requests/listener/security-headers.ts'
import { TrustedProxies } from '#requests/listener/trusted-proxies.ts'
import { LoginRoutes } from '#requests/login/login-routes.ts'
import { createPipeline } from '#requests/pipeline/pipeline.ts'
import { ChainRunner } from '#requests/routing/chain.ts'
import { Routes } from '#requests/routing/routes.ts'
import { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { Filter } from '#sdk/filter/filter.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { createApp } from '#server/app.ts'
import type { Runtime } from '#server/composition/runtime.ts'
import { createLogger, noAccessLog } from '#server/log/log.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { RunningConfiguration } from '#server/reload.ts'
import { rawRequest } from '#testing/gateway/raw-request.ts'
import { fakeLoginServices } from '#testing/login/fake-login-services.ts'

const everyone: Rule = { scope: 'dn', constraint: 'o=Tremolo', dn: Dn.parse('o=Tremolo') }
const results = { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined }

/** Answers with the request that it received. */
const echo: Filter = {
  handle: async ({ request, pathInfo }) => {
    const body = await request.body()
    const seen = {
      method: request.method,
      pathInfo,
      origin: request.origin,
      remote: request.remoteAddress,
      body: body.toString(),
    }
    return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(seen) }
  },
}

function runtime(filter: Filter, closed: () => void = () => {}): Runtime {
  const errors = (error: GatewayError) => ({
    headers: { 'content-type': 'application/scim+json' },
    body: `scim ${error.status}`,
  })
  const url = { at: 'a.yaml:1:1', hosts: ['127.0.0.1', 'app.test'], uri: '/api', pattern: undefined, chain: undefined }
  const routes = new Routes([
    {
      name: 'app',
      azTimeoutMillis: 0,
      cookies: undefined,
      urls: [{ ...url, rules: [everyone], filters: [filter], errors, takesForms: false, results }],
    },
  ])
  const rules = new RuleEvaluator({ search: async () => [], isMember: async () => false }, new Map(), silentLogger)
  const chains = new ChainRunner(new Map())
  const loginRoutes = new LoginRoutes([], chains)
  const handle = createPipeline({ ...fakeLoginServices(systemClock), routes, loginRoutes, rules, chains })
  const notifiers = { isEmpty: true, find: () => undefined }
  return {
    routes,
    loginRoutes,
    rules,
    handle,
    notifiers,
    target: () => {
      throw new Error('no target')
    },
    checkOutside: async () => ({ targets: [], issuers: [] }),
    reconciliations: {} as Runtime['reconciliations'],
    workflows: {} as Runtime['workflows'],
    configuration: {} as Runtime['configuration'],
    close: async () => closed(),
  }
}

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function start(
  filter: Filter = echo,
  proxies: string[] = [],
  ready: () => Promise<void> = async () => {},
  limits: Partial<ConnectionLimits> = {},
  log: Logger = silentLogger,
) {
  const running = new RunningConfiguration(runtime(filter), silentLogger)
  const metrics = createMetrics()
  const app = createApp({
    running,
    metrics,
    log,
    accessLog: noAccessLog,
    proxies: new TrustedProxies(proxies),
    limits: { ...defaultConnectionLimits, ...limits },
    tls: undefined,
    ready,
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  closers.push(() => app.close())
  const { port } = app.server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, metrics, running }
}

describe('the public listener', () => {
  test('passes a request to its filter, with body and its own id', async () => {
    const { url } = await start()
    const response = await fetch(`${url}/api/Users?x=1`, { method: 'POST', body: 'hello' })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'.*frame-ancestors 'none'$/)
    expect(response.headers.get('referrer-policy')).toBe('same-origin')
    expect(response.headers.get('strict-transport-security')).toBeNull()
    expect(await response.json()).toMatchObject({ method: 'POST', pathInfo: '/Users', body: 'hello' })
  })

  test('HEAD returns the length that GET would have, or none', async () => {
    const known: Filter = { handle: async () => ({ status: 200, headers: { 'content-length': '17' } }) }
    const unknown: Filter = { handle: async () => ({ status: 200, headers: {} }) }
    const lengths = [known, unknown, echo].map(async (filter) => {
      const { url } = await start(filter)
      return (await fetch(`${url}/api`, { method: 'HEAD' })).headers.get('content-length')
    })
    expect(await Promise.all(lengths)).toEqual(['17', null, expect.stringMatching(/^[1-9]\d+$/)])
  })

  test('does not accept a request id from the client', async () => {
    const { url } = await start()
    const response = await fetch(`${url}/api`, { headers: { 'x-request-id': 'forged', 'request-id': 'forged' } })
    expect(response.headers.get('x-request-id')).not.toBe('forged')
  })

  test('answers health checks for any host', async () => {
    const { url } = await start()
    expect(await (await fetch(`${url}/check_alive`)).text()).toBe('alive\n')
    expect((await fetch(`${url}/ready`)).status).toBe(200)
    const sick = await start(echo, [], () => Promise.reject(new Error('database gone')))
    const response = await fetch(`${sick.url}/ready`)
    expect([response.status, await response.text()]).toEqual([503, 'not ready\n'])
  })

  test('an unknown path or host is 404, and an unknown method reaches the filter', async () => {
    const { url, port } = await start()
    expect((await fetch(`${url}/nothing`)).status).toBe(404)
    expect(await rawRequest(port, 'GET /api HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 404 /,
    )
    const odd = await rawRequest(port, 'PROPFIND /api HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n')
    expect(odd).toMatch(/^HTTP\/1.1 200 [\s\S]*"method":"PROPFIND"/)
  })

  test.each([
    ['no host', 'GET /api HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a host with a path in it', 'GET /api HTTP/1.1\r\nHost: app.test/x\r\nConnection: close\r\n\r\n', 400],
    ['a port that does not exist', 'GET /api HTTP/1.1\r\nHost: app.test:65536\r\nConnection: close\r\n\r\n', 400],
    ['an address that does not exist', 'GET /api HTTP/1.1\r\nHost: 127.0.0.256\r\nConnection: close\r\n\r\n', 400],
    ['a host with spaces', 'GET /api HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', 400],
    ['dot segments', 'GET /api/../secret HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n', 400],
    ['escaped dot segments', 'GET /api/%2e%2e/secret HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n', 400],
    ['a broken escape', 'GET /api/%zz HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n', 400],
    ['a NUL character', 'GET /api/%00 HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n', 400],
    ['two hosts', 'GET /api HTTP/1.1\r\nHost: app.test\r\nHost: b.test\r\nConnection: close\r\n\r\n', 400],
    [
      'two credentials',
      'GET /api HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\nConnection: close\r\n\r\n',
      400,
    ],
    ['what is not HTTP', 'hello\r\n\r\n', 400],
    ['two lengths', 'POST /api HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
    [
      'length and chunks',
      'POST /api HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    [
      'a path of 9,000 characters',
      `GET /api/${'a'.repeat(9000)} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n`,
      414,
    ],
    ['headers of 20,000 characters', `GET /api HTTP/1.1\r\nHost: app.test\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s is rejected', async (_what, text, status) => {
    const { port } = await start()
    const answer = await rawRequest(port, text)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer).not.toMatch(/node_modules|at .*\.ts/)
  })

  test.each([
    ['a broken escape', '/api/Users/%zz', '', 400],
    ['dot segments', '/api/../api', '', 400],
    ['a long path', `/api/${'a'.repeat(9000)}`, '', 414],
    ['two credentials', '/api', 'Authorization: Bearer a\r\nAuthorization: Bearer b\r\n', 400],
  ])('%s is rejected in the format of the API', async (_what, path, headers, status) => {
    const { port } = await start()
    const answer = await rawRequest(
      port,
      `GET ${path} HTTP/1.1\r\nHost: app.test\r\n${headers}Connection: close\r\n\r\n`,
    )
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*\r\n\r\nscim ${status}$`))
  })

  test('a request without a host gets an error that says so', async () => {
    const { port } = await start()
    expect(await rawRequest(port, 'GET /api HTTP/1.1\r\nConnection: close\r\n\r\n')).toContain(
      'The Host header is malformed.',
    )
  })

  test('a body over the limit is 413 in the format of the API, announced or not', async () => {
    const { url, port } = await start()
    const announced = await fetch(`${url}/api`, { method: 'POST', body: 'x'.repeat(1024 * 1024 + 1) })
    expect([announced.status, await announced.text()]).toEqual([413, 'scim 413'])
    const chunk = `${(64 * 1024).toString(16)}\r\n${'x'.repeat(64 * 1024)}\r\n`
    const head = 'POST /api HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n'
    expect(await rawRequest(port, head + chunk.repeat(17))).toMatch(/^HTTP\/1.1 413 [\s\S]*scim 413/)
  })

  test('a body that does not arrive in time is 408 in the format of the API, and the connection is closed', async () => {
    const { port } = await start(echo, [], undefined, { headerSeconds: 1, requestSeconds: 1 })
    const answer = await rawRequest(port, 'POST /api HTTP/1.1\r\nHost: app.test\r\nContent-Length: 9\r\n\r\nhalf')
    expect(answer).toMatch(/^HTTP\/1.1 408 [\s\S]*connection: close[\s\S]*scim 408$/i)
  })

  test('a client that sends an oversized body before it reads gets the response', async () => {
    const { url } = await start()
    const request = http.request(`${url}/api`, { method: 'POST', agent: false })
    request.end(Buffer.alloc(10 * 1024 * 1024))
    const [response] = await once(request, 'response')
    expect([response.statusCode, await text(response)]).toEqual([413, 'scim 413'])
  })

  test('a connection does not retain its requests', async () => {
    const { url } = await start({
      handle: async ({ request }) => ({ status: 200, headers: {}, body: String(request.signal.aborted) }),
    })
    const warnings: unknown[] = []
    const onWarning = (warning: unknown) => warnings.push(warning)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    for (let i = 0; i < 30; i++) expect(await (await fetch(`${url}/api`)).text()).toBe('false')
    expect(warnings).toEqual([])
  })

  test("a compressed body is 415, and so is a content type that can't be parsed", async () => {
    const { url } = await start()
    const zipped = await fetch(`${url}/api`, { method: 'POST', body: 'x', headers: { 'content-encoding': 'gzip' } })
    expect([zipped.status, await zipped.text()]).toEqual([415, 'scim 415'])
    const odd = await fetch(`${url}/api`, { method: 'POST', body: 'x', headers: { 'content-type': 'nonsense;;;=' } })
    expect([odd.status, await odd.text()]).toEqual([415, 'scim 415'])
  })

  test('forwarded headers are accepted from trusted peers only', async () => {
    const headers = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'app.test',
      'x-forwarded-for': '6.6.6.6, 9.9.9.9',
    }
    const open = await start()
    expect(await (await fetch(`${open.url}/api`, { headers })).json()).toMatchObject({
      origin: open.url,
      remote: '127.0.0.1',
    })
    const behind = await start(echo, ['127.0.0.0/8'])
    const seen = await (await fetch(`${behind.url}/api`, { headers })).json()
    expect(seen).toMatchObject({ origin: 'https://app.test', remote: '9.9.9.9' })
  })

  test('an error of a filter is a 500 without details, and is counted', async () => {
    const { url, metrics } = await start({ handle: () => Promise.reject(new Error('secret detail')) })
    const response = await fetch(`${url}/api`)
    expect([response.status, await response.text()]).toEqual([500, 'scim 500'])
    expect(await metrics.registry.metrics()).toContain(
      'gatehouse_http_requests_total{application="app",method="GET",status="500",outcome="failed"} 1',
    )
  })

  test('a 500 that an API specifies for what the caller sent is counted as a refusal', async () => {
    const { url, metrics } = await start({ handle: async () => ({ status: 500, headers: {}, isRefusal: true }) })
    expect((await fetch(`${url}/api`)).status).toBe(500)
    await fetch(`${url}/nothing`)
    const text = await metrics.registry.metrics()
    expect(text).toContain(
      'gatehouse_http_requests_total{application="app",method="GET",status="500",outcome="refused"} 1',
    )
    expect(text).toContain(
      'gatehouse_http_requests_total{application="none",method="GET",status="404",outcome="refused"} 1',
    )
  })

  test('requests in flight are counted until they are answered or their client leaves', async () => {
    const [entered, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let waiting = 0
    const { url, metrics } = await start({
      handle: async () => {
        if (++waiting === 2) entered.resolve()
        await finish.promise
        return { status: 204, headers: {} }
      },
    })
    const inFlight = async (): Promise<string | undefined> =>
      /^gatehouse_http_requests_in_flight\{listener="public"\} (\d+)$/m.exec(await metrics.registry.metrics())?.[1]
    const leaving = new AbortController()
    const left = fetch(`${url}/api`, { signal: leaving.signal }).catch(() => undefined)
    const answered = fetch(`${url}/api`)
    await entered.promise
    expect(await inFlight()).toBe('2')
    leaving.abort()
    await left
    await expect.poll(inFlight).toBe('1')
    finish.resolve()
    await answered
    await expect.poll(inFlight).toBe('0')
  })

  test('a refused request is logged with code, reason and cause, and without a stack; a failed one with it', async () => {
    const lines: Record<string, unknown>[] = []
    const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
    const thrown = [
      new GatewayError('INVALID_JSON', 'the body does not parse', { cause: new SyntaxError('Unexpected token') }),
      new GatewayError('TARGET_FAILED', 'the target refused', { cause: new Error('constraint') }),
    ]
    const refusing: Filter = { handle: () => Promise.reject(thrown.shift()) }
    const { url, port } = await start(refusing, [], undefined, {}, log)
    expect((await fetch(`${url}/api`)).status).toBe(400)
    expect((await fetch(`${url}/api`)).status).toBe(502)
    // Refused before the pipeline.
    await rawRequest(port, 'GET /api/%zz HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n')
    await rawRequest(port, 'GET /api/%ff HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n')
    const refused = { level: 'info', msg: 'request refused' }
    expect(lines).toMatchObject([
      { ...refused, status: 400, code: 'INVALID_JSON', reason: 'the body does not parse', cause: 'Unexpected token' },
      {
        level: 'error',
        msg: 'request failed',
        status: 502,
        err: { code: 'TARGET_FAILED', cause: { message: 'constraint' } },
      },
      { ...refused, status: 400, code: 'BAD_REQUEST', reason: expect.any(String) },
      { ...refused, status: 400, code: 'BAD_REQUEST', reason: expect.any(String), cause: expect.any(String) },
    ])
    const traced = lines.filter((line) => JSON.stringify(line).includes('    at '))
    expect(traced.map(({ level }) => level)).toEqual(['error'])
  })

  test('a running request keeps its configuration open after a reload', async () => {
    let release: () => void = () => {}
    let closed = false
    let enter: () => void = () => {}
    const entered = new Promise<void>((resolve) => {
      enter = resolve
    })
    const slow: Filter = {
      handle: async () => {
        enter()
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return { status: 200, headers: {}, body: closed ? 'closed' : 'open' }
      },
    }
    const { url, running } = await start(echo)
    const close = (): void => {
      closed = true
    }
    running.swap(runtime(slow, close))
    const answer = fetch(`${url}/api`)
    await entered
    running.swap(runtime(echo))
    expect(await (await fetch(`${url}/api`)).json()).toMatchObject({ method: 'GET' })
    expect(closed).toBe(false)
    release()
    expect(await (await answer).text()).toBe('open')
    expect(closed).toBe(true)
  })
})

test('a body that is read while it is sent keeps its configuration open, until its end or until the client leaves', async () => {
  for (const leaves of [false, true]) {
    let closed = false
    let ended = false
    let release: () => void = () => {}
    const more = new Promise<void>((resolve) => {
      release = resolve
    })
    async function* parts() {
      try {
        yield 'first '
        await more
        yield closed ? 'closed' : 'open'
        await new Promise((resolve) => setImmediate(resolve))
        yield ' end'
      } finally {
        ended = true
      }
    }
    const filter: Filter = { handle: async () => ({ status: 200, headers: {}, body: Readable.from(parts()) }) }
    const { url, running } = await start(echo)
    running.swap(
      runtime(filter, () => {
        closed = true
      }),
    )
    const abort = new AbortController()
    const answer = await fetch(`${url}/api`, { signal: abort.signal })
    expect(answer.headers.get('content-length')).toBeNull()
    running.swap(runtime(echo))
    expect(closed).toBe(false)
    if (leaves) abort.abort()
    else release()
    if (!leaves) expect(await answer.text()).toBe('first open end')
    release()
    await expect.poll(() => [ended, closed]).toEqual([true, true])
  }
})

test('a body that ends with its filter does not keep an old configuration open', async () => {
  const body = new Readable({ read() {} })
  body.push('until then')
  const filter: Filter = { handle: async () => ({ status: 200, headers: {}, body, endsWithFilter: true }) }
  const { url, running } = await start(echo)
  running.swap(runtime(filter, () => void body.push(null)))
  const answer = await fetch(`${url}/api`)
  running.swap(runtime(echo))
  expect(await answer.text()).toBe('until then')
})

const long = { timeout: 15_000 }

/** The requests that were counted and the lines that were logged. */
async function startRecorded(filter: Filter, limits: Partial<ConnectionLimits> = {}) {
  const lines: Record<string, unknown>[] = []
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const { metrics, ...started } = await start(filter, [], undefined, limits, log)
  const counted = async (): Promise<string[]> =>
    (await metrics.registry.metrics()).match(
      /(?<=^gatehouse_http_requests_total\{.*status=")\d+",outcome="\w+"\} \d+$/gm,
    ) ?? []
  return { ...started, lines, counted }
}

test('a client that leaves before a streamed response closes its body, and is counted once without a failure', async () => {
  const [entered, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const body = new Readable({ read() {} })
  const { port, lines, counted } = await startRecorded({
    handle: async ({ request }) => {
      request.signal.addEventListener('abort', () => left.resolve())
      entered.resolve()
      await left.promise
      return { status: 200, headers: {}, body }
    },
  })
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /api HTTP/1.1\r\nHost: app.test\r\n\r\n')
  await entered.promise
  socket.destroy()
  await expect.poll(() => body.destroyed, long).toBe(true)
  await expect.poll(counted, long).toEqual(['200",outcome="ok"} 1'])
  expect(lines).toEqual([])
})

test('a response that comes after its time limit has its body closed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const [entered, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const body = new Readable({ read() {} })
  const { url } = await start({
    handle: async () => {
      entered.resolve()
      await late.promise
      return { status: 200, headers: {}, body }
    },
  })
  const answer = fetch(`${url}/api`)
  await entered.promise
  vi.advanceTimersByTime(httpLimits.answerSeconds * 1000)
  expect((await answer).status).toBe(504)
  late.resolve()
  await expect.poll(() => body.destroyed, long).toBe(true)
})

test('a header that cannot be sent is one 500, and closes the body', async () => {
  const body = new Readable({ read() {} })
  const { port, lines, counted } = await startRecorded({
    handle: async () => ({ status: 303, headers: { location: '/\u0142' }, body }),
  })
  const answer = await rawRequest(port, 'GET /api HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1.1 500 Internal Server Error\r\n[\s\S]*scim 500$/)
  expect(body.destroyed).toBe(true)
  expect(await counted()).toEqual(['500",outcome="failed"} 1'])
  expect(lines).toMatchObject([{ level: 'error', msg: 'request failed', status: 500 }])
})

test('a body that fails while it is sent cuts off the response, and the log says why', async () => {
  async function* parts() {
    yield 'first '
    throw new Error('database gone')
  }
  const { port, lines } = await startRecorded({
    handle: async () => ({ status: 200, headers: {}, body: Readable.from(parts()) }),
  })
  const answer = await rawRequest(port, 'GET /api HTTP/1.1\r\nHost: app.test\r\n\r\n')
  expect(answer).toMatch(/\r\nfirst \r\n$/)
  expect(lines).toMatchObject([
    { level: 'error', msg: 'response ended early: its body could not be read', err: { message: 'database gone' } },
  ])
})

test.each([
  ['at once', ['zz\r\n']],
  ['later', ['1\r\nx\r\n', 'zz\r\n']],
])('a malformed chunk (%s) is logged as the 400 that the client gets', async (_when, chunks) => {
  const { port, lines, counted } = await startRecorded(echo)
  const socket = connect(port, '127.0.0.1')
  const answer = text(socket)
  const head = 'POST /api HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n'
  const [first = '', ...others] = chunks
  socket.write(head + first)
  for (const chunk of others) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    socket.write(chunk)
  }
  expect(await answer).toMatch(/^HTTP\/1.1 400 /)
  await expect.poll(counted, long).toEqual(['400",outcome="refused"} 1'])
  expect(lines).toMatchObject([{ msg: 'request refused', status: 400, code: 'BAD_REQUEST' }])
})

test('input that is not HTTP does not take the response to the request before it away', async () => {
  const { port } = await start({ handle: async () => ({ status: 200, headers: {}, body: 'first' }) })
  const answer = await rawRequest(port, 'GET /api HTTP/1.1\r\nHost: app.test\r\n\r\n} garbage\r\n\r\n')
  expect(answer).toMatch(/^HTTP\/1.1 200 [\s\S]*first$/)
})

test.each([
  ['chunks in HTTP/1.0', 'HTTP/1.0', 'chunked'],
  ['a coding that is not decoded', 'HTTP/1.1', 'gzip, chunked'],
])('%s is rejected, and what follows it is not executed', async (_what, version, coding) => {
  const { port, counted } = await startRecorded(echo)
  const head = `POST /api ${version}\r\nHost: app.test\r\nConnection: keep-alive\r\nTransfer-Encoding: ${coding}\r\n\r\n`
  const next = 'GET /api HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n'
  expect(await rawRequest(port, `${head}0\r\n\r\n${next}`)).toMatch(/^HTTP\/1.1 400 (?![\s\S]*HTTP\/1.1)/)
  expect(await counted()).toEqual([])
})

test('an unknown expectation is ignored', async () => {
  const { port, counted } = await startRecorded(echo)
  const answer = await rawRequest(
    port,
    'GET /api HTTP/1.1\r\nHost: app.test\r\nExpect: the-unexpected\r\nConnection: close\r\n\r\n',
  )
  expect(answer).toMatch(/^HTTP\/1.1 200 /)
  expect(await counted()).toEqual(['200",outcome="ok"} 1'])
})

test.each([
  ['what is not HTTP', 'hello\r\n\r\n', 400],
  ['too many headers', `GET /api HTTP/1.1\r\nHost: app.test\r\n${'A: b\r\n'.repeat(100)}\r\n`, 431],
  ['a health check', 'GET /check_alive HTTP/1.1\r\nConnection: close\r\n\r\n', 200],
])('the response to %s has security headers', async (_what, sent, status) => {
  const { port } = await start()
  const answer = await rawRequest(port, sent)
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  for (const [name, value] of Object.entries(securityHeaders())) expect(answer).toContain(`\r\n${name}: ${value}\r\n`)
})

test('TrustedProxies rejects what is not an address', () => {
  expect(() => new TrustedProxies(['example.com'])).toThrow('not an address')
  expect(() => new TrustedProxies(['10.0.0.0/x'])).toThrow('not an address')
  expect(new TrustedProxies(['10.0.0.0/8', '::1']).trusts('::ffff:10.1.2.3')).toBe(true)
})

test('responses have security headers, with HSTS over TLS', () => {
  const plain = securityHeaders('http://portal.test')
  const secure = securityHeaders('https://portal.test')
  expect(secure).toEqual({ ...plain, 'strict-transport-security': 'max-age=31536000' })
  expect(plain['content-security-policy']).toContain("default-src 'none'")
  expect(plain['content-security-policy']).toContain("frame-ancestors 'none'")
  expect(plain['content-security-policy']).not.toMatch(/unsafe|\*/)
  expect(plain).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin' })
  expect(securityHeaders(undefined)).toBe(plain)
})
