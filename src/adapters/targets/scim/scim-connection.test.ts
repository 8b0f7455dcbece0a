import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { openHttpPool } from '#protocols/http/http-client.ts'
import { testServerCertificate, testServerKey, unrelatedCertificate } from '#testing/gateway/test-certificates.ts'
import { type Credentials, ScimConnection } from './scim-connection.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, nth: number) => void

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Answer => {
  return (_, response) => response.writeHead(status, headers).end(JSON.stringify(body))
}

/** A server with configured responses, and a connection to it. */
async function connect(answer: Answer, options: { timeoutMillis?: number; credentials?: Credentials } = {}) {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    request.resume().on('end', () => answer(request, response, seen.length))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const pool = openHttpPool()
  onTestFinished(() => {
    pool.close()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const connection = new ScimConnection(pool.send, {
    base: new URL(`http://127.0.0.1:${port}/scim/v2/`),
    name: 'crm',
    credentials: options.credentials ?? { header: async () => 'Bearer hush', renew: () => false },
    timeoutMillis: options.timeoutMillis ?? 3000,
    clock: systemClock,
  })
  return { connection, seen }
}

test('a call has its address, its query and its headers', async () => {
  const { connection, seen } = await connect(json(200, { id: '1' }, { etag: 'W/"1"' }))
  const answer = await connection.call({
    method: 'PATCH',
    path: '/Users/a%2Fb',
    query: { filter: 'userName eq "a&b=c#d"' },
    body: { x: 1 },
    ifMatch: 'W/"0"',
  })
  expect(answer).toEqual({ status: 200, body: { id: '1' }, etag: 'W/"1"' })
  const [request] = seen
  expect(request?.headers).toMatchObject({
    authorization: 'Bearer hush',
    'if-match': 'W/"0"',
    // Some services refuse calls without one.
    'user-agent': 'gatehouse',
    'content-type': 'application/scim+json',
  })
  const url = new URL(request?.url ?? '', 'http://x')
  expect(url.pathname).toBe('/scim/v2/Users/a%2Fb')
  expect([...url.searchParams]).toEqual([['filter', 'userName eq "a&b=c#d"']])
})

test.each([
  [400, { detail: 'No \u0007such\nthing', scimType: 'invalidPath' }, 'BAD_REQUEST', 'No such thing'],
  [400, { detail: 'taken', scimType: 'uniqueness' }, 'CONFLICT', 'taken'],
  [401, { detail: 'inner secret' }, 'TARGET_FAILED', 'A downstream system refused the change.'],
  [403, {}, 'TARGET_FAILED', 'A downstream system refused the change.'],
  [404, {}, 'NOT_FOUND', 'Nothing was found at this address.'],
  [409, { detail: 'taken' }, 'CONFLICT', 'taken'],
  [412, {}, 'VERSION_MISMATCH', 'The resource was changed by someone else.'],
  [418, {}, 'TARGET_FAILED', 'A downstream system refused the change.'],
  [500, { detail: 'at line 7' }, 'TARGET_UNREACHABLE', 'A downstream system is not available.'],
  [501, {}, 'NOT_SUPPORTED', 'This operation is not supported here.'],
  [302, {}, 'TARGET_FAILED', 'A downstream system refused the change.'],
])('%i %j is %s', async (status, body, code, publicText) => {
  const { connection, seen } = await connect(json(status, body, { location: 'http://127.0.0.1:1/' }))
  const call = connection.call({ method: 'POST', path: '/Users', body: {} })
  await expect(call).rejects.toMatchObject({
    code,
    publicText,
    message: expect.stringContaining('target "crm": POST /Users'),
  })
  expect(seen).toHaveLength(1)
})

test('the text of a server is cut, and left out for a secret call', async () => {
  const { connection } = await connect(json(400, { detail: 'x'.repeat(10_000), scimType: 'y'.repeat(10_000) }))
  const reported = await connection.call({ method: 'POST', path: '/Users', body: {} }).catch((error: unknown) => error)
  expect(reported).toMatchObject({ publicText: 'x'.repeat(300), keyword: undefined })
  const secret = await connection
    .call({ method: 'PATCH', path: '/Users/1', body: {}, secret: true })
    .catch((error: unknown) => error)
  expect(String((secret as Error).message)).not.toContain('xxx')
})

test('429 is retried after Retry-After, for every method', async () => {
  const { connection, seen } = await connect((request, response, nth) =>
    nth < 3
      ? json(429, {}, { 'retry-after': '0' })(request, response, nth)
      : json(201, { id: '1' })(request, response, nth),
  )
  expect(await connection.call({ method: 'POST', path: '/Users', body: {} })).toMatchObject({ status: 201 })
  expect(seen).toHaveLength(3)
})

test('a Retry-After beyond the timeout fails at once', async () => {
  const { connection, seen } = await connect(json(503, {}, { 'retry-after': '120' }), { timeoutMillis: 60_000 })
  const started = performance.now()
  await expect(connection.call({ method: 'GET', path: '/Users' })).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    retryAfter: 120,
  })
  expect(performance.now() - started).toBeLessThan(15_000)
  expect(seen).toHaveLength(1)
})

test('repeated Retry-After does not keep a call forever', async () => {
  const { connection, seen } = await connect(json(429, {}, { 'retry-after': '0' }))
  await expect(connection.call({ method: 'GET', path: '/Users' })).rejects.toMatchObject({
    code: 'TARGET_UNREACHABLE',
    publicText: 'A downstream system has too many requests.',
  })
  expect(seen.length).toBeLessThanOrEqual(8)
})

test('a call is sent again after a 503 with Retry-After, unless it creates: that may have been done', async () => {
  const busy: Answer = (request, response, nth) =>
    nth === 1
      ? json(503, {}, { 'retry-after': '0' })(request, response, nth)
      : json(200, { id: '1' })(request, response, nth)
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'] as const) {
    const { connection, seen } = await connect(busy)
    expect(await connection.call({ method, path: '/Users/1' })).toMatchObject({ status: 200 })
    expect(seen).toHaveLength(2)
  }
  const { connection, seen } = await connect(busy)
  const creation = connection.call({ method: 'POST', path: '/Users', body: {} })
  await expect(creation).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  expect(seen).toHaveLength(1)
})

test('403 is a refusal, or a rate limit if its headers say so', async () => {
  const limited: Answer = (request, response, nth) => {
    const reset = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' }
    nth === 1 ? json(403, {}, reset)(request, response, nth) : json(201, { id: '1' })(request, response, nth)
  }
  const { connection, seen } = await connect(limited)
  expect(await connection.call({ method: 'POST', path: '/Users', body: {} })).toMatchObject({ status: 201 })
  expect(seen).toHaveLength(2)
  const refused = await connect(json(403, {}, { 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': '1' }))
  const call = refused.connection.call({ method: 'GET', path: '/Users' })
  await expect(call).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

describe('one budget for all calls', () => {
  test('a pause that one call gets holds for all, and then one goes first', async () => {
    let underWay = 0
    const atArrival: number[] = []
    const { connection, seen } = await connect(
      (request, response, nth) => {
        if (nth === 1) return json(429, {}, { 'retry-after': '1' })(request, response, nth)
        atArrival.push(++underWay)
        setTimeout(() => {
          underWay--
          json(200, { id: '1' })(request, response, nth)
        }, 20)
      },
      { timeoutMillis: 60_000 },
    )
    const get = () => connection.call({ method: 'GET', path: '/Users' })
    const first = get()
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBe(1)
    await Promise.all([first, ...Array.from({ length: 20 }, get)])
    expect(seen).toHaveLength(22)
    expect(atArrival[0]).toBe(1)
    expect(atArrival[1]).toBeLessThanOrEqual(2)
  })

  test('no call is sent to a window in which none is left', async () => {
    const arrivals: number[] = []
    const { connection } = await connect((request, response, nth) => {
      arrivals.push(performance.now())
      json(200, { id: '1' }, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1' })(request, response, nth)
    })
    for (let i = 0; i < 2; i++) await connection.call({ method: 'GET', path: '/Users' })
    const [first = 0, second = 0] = arrivals
    expect(second - first).toBeGreaterThan(900)
  })

  test('calls that cannot wait so long are not sent, and their error says when they can be', async () => {
    const { connection, seen } = await connect(json(429, {}, { 'retry-after': '999999999' }))
    for (const said of ['answered 429', 'was not sent: the server wants no calls for 3600 seconds']) {
      const call = connection.call({ method: 'POST', path: '/Users', body: {} })
      await expect(call).rejects.toMatchObject({
        code: 'TARGET_UNREACHABLE',
        retryAfter: 3600,
        publicText: 'A downstream system has too many requests.',
        message: expect.stringContaining(said),
      })
    }
    expect(seen).toHaveLength(1)
  })
})

test('reads are retried after a lost response, writes are not', async () => {
  const lost: Answer = (request, response, nth) =>
    nth === 1 ? response.destroy() : json(200, { id: '1' })(request, response, nth)
  const reading = await connect(lost)
  expect(await reading.connection.call({ method: 'GET', path: '/Users' })).toMatchObject({ status: 200 })
  const writing = await connect(lost)
  const call = writing.connection.call({ method: 'PATCH', path: '/Users/1', body: {} })
  await expect(call).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  expect(writing.seen).toHaveLength(1)
})

test('a slow server, and one that never ends its response, time out', async () => {
  const endless: Answer = (_, response) => void response.writeHead(200).write('{"id":')
  for (const answer of [() => {}, endless]) {
    const { connection } = await connect(answer, { timeoutMillis: 200 })
    const call = connection.call({ method: 'GET', path: '/Users' })
    await expect(call).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  }
})

test.each(['<html>log in</html>', '[]', '"text"', '{"id":', '['.repeat(100_000)])(
  'garbage %# is not a valid response',
  async (text) => {
    const { connection } = await connect((_, response) => response.writeHead(200).end(text))
    const call = connection.call({ method: 'DELETE', path: '/Users/1' })
    await expect(call).rejects.toMatchObject({ code: 'TARGET_FAILED' })
  },
)

test('an endless response is cut off', async () => {
  const flood: Answer = (_, response) => {
    const chunk = Buffer.alloc(1 << 20, 32)
    const pour = (): void => {
      while (!response.destroyed && response.write(chunk));
    }
    response
      .writeHead(200)
      .on('drain', pour)
      .on('error', () => {})
    pour()
  }
  const { connection } = await connect(flood, { timeoutMillis: 20_000 })
  const call = connection.call({ method: 'GET', path: '/Users' })
  await expect(call).rejects.toMatchObject({ code: 'TARGET_FAILED', message: expect.stringContaining('longer than') })
})

test('a rejected token is replaced once', async () => {
  let token = 1
  const credentials = { header: async () => `Bearer t${token}`, renew: () => ++token > 0 }
  const { connection, seen } = await connect(
    (request, response, nth) => {
      const status = request.headers.authorization === 'Bearer t2' ? 200 : 401
      json(status, {})(request, response, nth)
    },
    { credentials },
  )
  expect(await connection.call({ method: 'POST', path: '/Users', body: {} })).toMatchObject({ status: 200 })
  token = 5
  await expect(connection.call({ method: 'POST', path: '/Users', body: {} })).rejects.toMatchObject({
    code: 'TARGET_FAILED',
  })
  expect(seen).toHaveLength(4)
})

test('an absent server is unreachable, and the error has no token', async () => {
  const pool = openHttpPool()
  onTestFinished(() => pool.close())
  const connection = new ScimConnection(pool.send, {
    base: new URL('http://127.0.0.1:1/'),
    name: 'crm',
    credentials: { header: async () => 'Bearer hush', renew: () => false },
    timeoutMillis: 2000,
    clock: systemClock,
  })
  const error = await connection.call({ method: 'GET', path: '/Users' }).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'TARGET_UNREACHABLE', message: 'target "crm": GET /Users was not answered' })
  expect(JSON.stringify(error)).not.toContain('hush')
})

test('a server is trusted by its CA, and by no other', async () => {
  const server = createSecureServer({ key: testServerKey, cert: testServerCertificate }, (_, response) => {
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const call = (authority?: string) => {
    const pool = openHttpPool(authority)
    onTestFinished(() => pool.close())
    const { port } = server.address() as AddressInfo
    const options = {
      base: new URL(`https://127.0.0.1:${port}`),
      name: 'crm',
      credentials: { header: async () => 'Bearer hush', renew: () => false },
      timeoutMillis: 3000,
      clock: systemClock,
    }
    return new ScimConnection(pool.send, options).call({ method: 'DELETE', path: '/Users/1' })
  }
  expect(await call(testServerCertificate)).toMatchObject({ status: 200 })
  await expect(call(unrelatedCertificate)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  await expect(call()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})
