import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { HttpRequest, normalizePath, validPrefix } from './http-request.ts'
import { TrustedProxies } from './trusted-proxies.ts'

/** What a client sends, as the server receives it; `leave` ends the connection from the client's side. */
async function received(text: string): Promise<{ raw: IncomingMessage; leave(): Promise<void> }> {
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const came = new Promise<IncomingMessage>((resolve) => server.once('request', resolve))
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void client.destroy())
  client.write(text)
  const raw = await came
  return {
    raw,
    async leave() {
      const closed = new Promise((resolve) => raw.once('close', resolve))
      client.destroy()
      await closed
    },
  }
}

const proxies = new TrustedProxies([])
const head = (length: number) => `POST /x HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: ${length}\r\n\r\n`

test('a body is read once, for all its readers', async () => {
  const { raw } = await received(`${head(4)}abcd`)
  const request = new HttpRequest(raw, 'id', proxies)
  expect([String(await request.body()), String(await request.body())]).toEqual(['abcd', 'abcd'])
})

test('a client that leaves while its body is read is an error', async () => {
  const { raw, leave } = await received(`${head(4)}ab`)
  const body = new HttpRequest(raw, 'id', proxies).body()
  body.catch(() => {})
  await leave()
  await expect(body).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
})

test('the signal of a client that left before, and of a request that was given up before, has fired', async () => {
  const { raw, leave } = await received(`${head(4)}abcd`)
  const [left, abandoned] = [new HttpRequest(raw, 'id', proxies), new HttpRequest(raw, 'id', proxies)]
  abandoned.abandon()
  expect(abandoned.signal.aborted).toBe(true)
  await leave()
  expect(left.signal.aborted).toBe(true)
})

test.each(['ab', 'abcd'])(
  'reading the body of a client that left (%s) is an error, not an endless wait',
  async (sent) => {
    const { raw, leave } = await received(`${head(4)}${sent}`)
    const request = new HttpRequest(raw, 'id', proxies)
    await leave()
    await expect(request.body()).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
  },
  20_000,
)

test.each([
  ['Host: 127.0.0.1:8080', true],
  ['Host: localhost', true],
  ['Host: localhost\r\nX-Forwarded-For: 127.0.0.1, [::1]:4711', true],
  ['Host: portal.example.com', false],
  ['Host: localhost\r\nX-Forwarded-For: 192.0.2.7', false],
  ['Host: localhost\r\nX-Forwarded-For: 192.0.2.7:4711, 127.0.0.1', false],
  ['Host: localhost\r\nX-Forwarded-For: unknown', false],
  ['Host: localhost\r\nX-Real-IP: 192.0.2.7', false],
  ['Host: localhost\r\nX-Forwarded-Host: portal.example.com', false],
  ['Host: localhost\r\nForwarded: for=127.0.0.1', false],
])('a request with %j is local: %s', async (headers, isLocal) => {
  const { raw } = await received(`GET / HTTP/1.1\r\n${headers}\r\n\r\n`)
  expect(new HttpRequest(raw, 'id', proxies).isLocal).toBe(isLocal)
})

test.each([
  ['X-Forwarded-For: 192.0.2.1', [], ['127.0.0.1']],
  ['Forwarded: for=192.0.2.1', [], ['127.0.0.1']],
  ['X-Forwarded-For: 192.0.2.1', ['127.0.0.1'], []],
  ['X-Other: 192.0.2.1', [], []],
])(
  'headers about the client from a peer that is not trusted are reported: %s, trusted %j',
  async (line, trusted, reported) => {
    const ignored: string[] = []
    const { raw } = await received(`GET / HTTP/1.1\r\nHost: a.example.com\r\n${line}\r\n\r\n`)
    const request = new HttpRequest(raw, 'id', new TrustedProxies(trusted, (peer) => ignored.push(peer)))
    expect(ignored).toEqual(reported)
    expect(request.remoteAddress).toBe(trusted.length === 0 ? '127.0.0.1' : '192.0.2.1')
  },
)

describe('normalizePath', () => {
  test.each([
    ['/a/b', '/a/b'],
    ['/%61dmin/%7Euser', '/admin/~user'],
    ['/a%2fb', '/a%2Fb'],
    ['/a/...', '/a/...'],
    ['/a/.hidden', '/a/.hidden'],
    ['/%C3%A4', '/%C3%A4'],
  ])('%s becomes %s', (raw, expected) => {
    expect(normalizePath(raw)).toBe(expected)
  })

  test.each([
    'a',
    '/a/../b',
    '/a/%2e%2E/b',
    '/..',
    '/a/.',
    '/%',
    '/%4',
    '/%zz',
    '/a\\b',
    '/a b',
    '/%00',
    '/%C3',
    '/\u0001',
  ])('rejects %j', (raw) => {
    expect(() => normalizePath(raw)).toThrow(expect.objectContaining({ code: 'BAD_REQUEST' }))
  })

  test('rejects a path that is too long with 414', () => {
    expect(() => normalizePath(`/${'a'.repeat(9000)}`)).toThrow(expect.objectContaining({ status: 414 }))
  })

  test('is idempotent, and throws only refusals', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '/', '.', '%', '2', 'e', 'E', 'F', '\\', 'ä') }), (tail) => {
        try {
          const once = normalizePath(`/${tail}`)
          expect(normalizePath(once)).toBe(once)
          expect(decodeURIComponent(once).split('/')).not.toContain('\0')
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError)
        }
      }),
    )
  })
})

describe('validPrefix', () => {
  test.each([
    ['/scim/people/Users/%zz', '/scim/people/Users'],
    ['/scim/people/../crm', '/scim/people'],
    ['/scim/people/Users\\x', '/scim/people'],
    ['/scim/people/a%2fb?x=1', '/scim/people'],
    ['/scim/people/Users?filter=%', '/scim/people/Users'],
    ['/%2e%2e/x', ''],
    ['//x', ''],
    ['http://evil/scim', ''],
    ['*', ''],
  ])('of %s is %j', (raw, expected) => {
    expect(validPrefix(raw)).toBe(expected)
  })
})
