import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { HttpRequest } from '#server/http-request.ts'
import { TrustedProxies } from '#server/trusted-proxies.ts'

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

test.each(['ab', 'abcd'])(
  'reading the body of a client that left (%s) is an error, not an endless wait',
  async (sent) => {
    const { raw, leave } = await received(`${head(4)}${sent}`)
    const request = new HttpRequest(raw, 'id', proxies)
    await leave()
    await expect(request.body()).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
  },
  3_000,
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
