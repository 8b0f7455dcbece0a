import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { EventPusher } from '#protocols/secevent/event-pusher.ts'

const now = new Date('2030-01-02T03:04:05Z')

async function push(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: { bearer?: string; millis?: number } = {},
) {
  const seen: { method: string | undefined; headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      seen.push({ method: request.method, headers: request.headers, body })
      answer(request, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const pusher = new EventPusher(new URL(`http://127.0.0.1:${port}/events?x=1`), options.bearer)
  onTestFinished(() => {
    pusher.close()
    server.closeAllConnections()
    server.close()
  })
  const outcome = await pusher.push('the.signed.token', AbortSignal.timeout(options.millis ?? 5000), now)
  return { outcome, seen, pusher }
}

const answering =
  (status: number, body = '', headers: Record<string, string> = {}) =>
  (_: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body)

test('RFC 8935 2.1: the token is the body, with its type', async () => {
  const { outcome, seen } = await push(answering(202), { bearer: 'secret' })
  expect(outcome).toEqual({ kind: 'accepted' })
  expect(seen).toMatchObject([
    {
      method: 'POST',
      body: 'the.signed.token',
      headers: {
        'content-type': 'application/secevent+jwt',
        accept: 'application/json',
        authorization: 'Bearer secret',
        'content-length': '16',
      },
    },
  ])
  expect((await push(answering(202))).seen[0]?.headers.authorization).toBeUndefined()
})

test.each([
  ['invalid_request', 'refused'],
  ['something_new', 'refused'],
  ['invalid_key', 'failed'],
  ['invalid_issuer', 'failed'],
  ['invalid_audience', 'failed'],
  ['authentication_failed', 'failed'],
  ['access_denied', 'failed'],
])('RFC 8935 2.4: %s is %s', async (err, kind) => {
  const { outcome } = await push(answering(400, JSON.stringify({ err, description: 'why' })))
  expect(outcome).toEqual({ kind, reason: `400 ${err}: why` })
})

test.each([
  [200, '', 'accepted'],
  [204, '', 'accepted'],
  [301, '', 'failed'],
  [400, '', 'failed'],
  [400, '<html>', 'failed'],
  [400, '{"err": 1}', 'failed'],
  [400, 'null', 'failed'],
  [401, '', 'failed'],
  [404, '', 'failed'],
  [413, '', 'refused'],
  [500, '{"err": "invalid_request"}', 'failed'],
])('%i with body %s is %s', async (status, body, kind) => {
  expect((await push(answering(status, body))).outcome.kind).toBe(kind)
})

test('Retry-After is returned', async () => {
  expect((await push(answering(503, '', { 'retry-after': '7' }))).outcome).toEqual({
    kind: 'failed',
    reason: '503',
    retryAfterMillis: 7000,
  })
})

test('a receiver that hangs, disconnects, or responds endlessly is a failure in a bounded time', async () => {
  expect((await push(() => {}, { millis: 50 })).outcome.kind).toBe('failed')
  expect((await push((request) => void request.socket.destroy())).outcome.kind).toBe('failed')
  const endless = (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(400)
    const timer = setInterval(() => response.write('x'.repeat(1024)), 1)
    response.on('close', () => clearInterval(timer))
  }
  expect((await push(endless)).outcome.kind).toBe('failed')
})
