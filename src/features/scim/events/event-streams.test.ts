import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { memoryEventStore } from '#testing/workflows/memory-event-store.ts'
import type { EventPoll, SecurityEvent } from './event-stream.ts'
import { EventStreams } from './event-streams.ts'

const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
const keys = { publicKey: async () => undefined, signingKey: async () => signingKey, secretKeys: async () => [] }
const stream = { name: 's', issuer: 'https://gw', audience: 'https://receiver', key: 'k' }

function open(delivers = true) {
  const store = memoryEventStore()
  const counts: [string, number][] = []
  const meter = {
    counted: (_: string, outcome: string, count: number) => {
      if (count > 0) counts.push([outcome, count])
    },
    oldest: (_: string, seconds: number) => {
      counts.push(['oldest', Math.round(seconds)])
    },
  }
  const streams = new EventStreams({ store, keys, clock: systemClock, log: silentLogger, meter, delivers })
  onTestFinished(() => streams.close())
  return { store, streams, counts }
}

const event = (transaction: string): SecurityEvent => ({
  transaction,
  subject: { format: 'scim', uri: '/Users/1' },
  events: { 'urn:x': {} },
})

const poll = (more: Partial<EventPoll> = {}): EventPoll => ({
  max: 10,
  acknowledged: [],
  refused: new Map(),
  waitMillis: 0,
  signal: new AbortController().signal,
  ...more,
})

test('a poll returns signed tokens until they are acknowledged', async () => {
  const { streams, counts } = open()
  await streams.open(stream).append([event('t1'), event('t2'), event('t3')])
  const first = await streams.poll('s', poll({ max: 2 }))
  expect(first.more).toBe(true)
  const [token = ''] = first.tokens.values()
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'RS256', typ: 'secevent+jwt', kid: expect.any(String) })
  const [id = ''] = first.tokens.keys()
  expect(decodeJwt(token)).toEqual({
    iss: 'https://gw',
    aud: 'https://receiver',
    iat: expect.any(Number),
    jti: id,
    txn: 't1',
    sub_id: { format: 'scim', uri: '/Users/1' },
    events: { 'urn:x': {} },
  })
  expect(await streams.poll('s', poll({ max: 2 }))).toEqual(first)
  const [one = '', two = ''] = first.tokens.keys()
  const refused = new Map([[two, { error: 'invalid_key', description: '' }]])
  const last = await streams.poll('s', poll({ acknowledged: [one, 'unknown'], refused }))
  expect([...last.tokens.values()].map((text) => decodeJwt(text)['txn'])).toEqual(['t3'])
  expect(last.more).toBe(false)
  expect(await streams.poll('s', poll({ max: 0, acknowledged: [...last.tokens.keys()] }))).toEqual({
    tokens: new Map(),
    more: false,
  })
  expect((await streams.poll('s', poll())).tokens.size).toBe(0)
  expect(counts).toEqual([
    ['appended', 3],
    ['refused', 1],
    ['delivered', 1],
    ['delivered', 1],
  ])
})

test('a waiting poll is answered by the next event, by its timeout, and when the process drains', async () => {
  const { streams } = open()
  const opened = streams.open(stream)
  const waiting = streams.poll('s', poll({ waitMillis: 30_000 }))
  await opened.append([event('t1')])
  expect((await waiting).tokens.size).toBe(1)
  await streams.poll('s', poll({ max: 0, acknowledged: [...(await waiting).tokens.keys()] }))
  expect((await streams.poll('s', poll({ waitMillis: 20 }))).tokens.size).toBe(0)
  const gone = new AbortController()
  const left = streams.poll('s', poll({ waitMillis: 30_000, signal: gone.signal }))
  gone.abort()
  expect((await left).tokens.size).toBe(0)
  const drained = streams.poll('s', poll({ waitMillis: 30_000 }))
  streams.drain()
  expect((await drained).tokens.size).toBe(0)
  expect((await streams.poll('s', poll({ waitMillis: 30_000 }))).tokens.size).toBe(0)
})

test('the number of waiting polls is limited', async () => {
  const { streams } = open()
  const gone = new AbortController()
  const waiting = Array.from({ length: 16 }, () => streams.poll('s', poll({ waitMillis: 30_000, signal: gone.signal })))
  await expect(streams.poll('s', poll({ waitMillis: 30_000 }))).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  expect((await streams.poll('other', poll())).tokens.size).toBe(0)
  gone.abort()
  await Promise.all(waiting)
})

async function receiverAt() {
  const got: string[] = []
  const port = await freePort()
  const server = createServer((request, response) => {
    got.push(`${request.url} ${request.headers.authorization ?? ''}`.trim())
    request.resume().on('end', () => response.writeHead(202).end())
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { got, url: (path: string) => new URL(`http://127.0.0.1:${port}${path}`) }
}

test('the last opened stream decides the receiver; after it closes, the previous one does', async () => {
  const { streams, store } = open()
  const { got, url } = await receiverAt()
  const old = streams.open({ ...stream, push: { url: url('/old') } })
  const fresh = streams.open({ ...stream, push: { url: url('/new'), token: 'secret' } })
  await old.append([event('t1')])
  await vi.waitFor(() => expect(got).toEqual(['/new Bearer secret']), { timeout: 15_000 })
  // A stream that is closed before it saw the response may be repeated by the previous one.
  await vi.waitFor(async () => expect(await store.read('s', 10)).toEqual([]))
  await fresh.close()
  await fresh.close()
  await old.append([event('t2')])
  await vi.waitFor(() => expect(got).toEqual(['/new Bearer secret', '/old']), { timeout: 15_000 })
})

test('a process that does not deliver pushes nothing', async () => {
  const { streams, store } = open(false)
  const { got, url } = await receiverAt()
  await streams.open({ ...stream, push: { url: url('/') } }).append([event('t1')])
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(got).toEqual([])
  expect(await store.read('s', 10)).toHaveLength(1)
})

test('events that are too old are dropped and counted, and the age of the oldest is reported', async () => {
  const { streams, store, counts } = open()
  streams.open(stream)
  const old = new Date(Date.now() - 8 * 24 * 3600_000)
  const recent = new Date(Date.now() - 60_000)
  await store.append('s', [
    { id: '1', time: old, key: 'k', claims: {} },
    { id: '2', time: recent, key: 'k', claims: {} },
  ])
  await streams.trim()
  expect(counts).toEqual([
    ['oldest', 60],
    ['dropped', 1],
  ])
})
