import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { LogFields, Logger } from '#kernel/logger.ts'
import { silentLogger } from '#kernel/logger.ts'
import { OtlpExporter, type SpanOutcome } from '#server/tracing/otlp-exporter.ts'
import { type EndedSpan, SpanTracer } from '#server/tracing/span-tracer.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { startOtlpReceiver } from '#testing/servers/otlp-receiver.ts'

const long = 20_000

function exporterTo(
  url: string,
  limits: ConstructorParameters<typeof OtlpExporter>[1] = {},
  timeoutMillis: number = long,
) {
  const counts = { sent: 0, rejected: 0, dropped: 0 }
  const lines: string[] = []
  const logged: LogFields[] = []
  const note = (message: string, fields: LogFields = {}): void => {
    lines.push(message)
    logged.push(fields)
  }
  const log: Logger = { ...silentLogger, warn: note, info: note }
  const parts = {
    url: new URL(`${url}/v1/traces`),
    headers: { authorization: 'Bearer secret' },
    timeoutMillis,
    resource: { 'service.name': 'test' },
    version: '1',
    meter: {
      counted: (outcome: SpanOutcome, spans: number) => {
        counts[outcome] += spans
      },
    },
    log,
  }
  const exporter = new OtlpExporter(parts, { everyMillis: 10, pauseMillis: 10, closeMillis: 50, ...limits })
  const tracer = new SpanTracer({ parentBased: true, ratio: 1 }, (span: EndedSpan) => exporter.add(span))
  const record = (count: number): void => {
    const attributes = { text: 'a', number: 7, share: 0.5, yes: true }
    for (let i = 0; i < count; i++) tracer.span({ name: 'one', kind: 'server', parent: 'none', attributes }, () => {})
  }
  return { exporter, counts, lines, logged, record }
}

test('sends spans in batches, and the rest when it is closed', async () => {
  const receiver = await startOtlpReceiver()
  onTestFinished(() => receiver.close())
  const { exporter, counts, record } = exporterTo(receiver.url, { batch: 10, closeMillis: long })
  record(25)
  await until(async () => counts.sent === 25, long)
  expect(receiver.requests).toHaveLength(3)
  expect(receiver.requests[0]).toMatchObject({ authorization: 'Bearer secret', 'content-type': 'application/json' })
  expect(receiver.requests[0]).not.toHaveProperty('traceparent')
  record(1)
  await exporter.close()
  expect(counts).toEqual({ sent: 26, rejected: 0, dropped: 0 })
  expect(receiver.spans).toHaveLength(26)
  expect(receiver.spans[0]).toMatchObject({
    name: 'one',
    kind: 2,
    failed: false,
    attributes: { text: 'a', number: 7, share: 0.5, yes: true },
    resource: { 'service.name': 'test' },
  })
  expect(receiver.spans[0]?.millis).toBeGreaterThanOrEqual(0)
})

test('drops what a receiver that hangs cannot take, and closes without its answer', async () => {
  const receiver = await startOtlpReceiver('hangs')
  onTestFinished(() => receiver.close())
  const { exporter, counts, record } = exporterTo(receiver.url, { queued: 20, batch: 10 })
  record(10)
  await until(async () => receiver.requests.length === 1, long)
  record(50)
  expect(counts).toEqual({ sent: 0, rejected: 0, dropped: 30 })
  await exporter.close()
  expect(counts).toEqual({ sent: 0, rejected: 0, dropped: 60 })
  record(1)
  expect(counts).toEqual({ sent: 0, rejected: 0, dropped: 61 })
})

test('logs an outage once, and its end', async () => {
  const receiver = await startOtlpReceiver(503)
  onTestFinished(() => receiver.close())
  const { exporter, counts, lines, record } = exporterTo(receiver.url)
  const outage = 'traces cannot be sent; spans are dropped until the endpoint answers'
  for (let dropped = 1; dropped <= 3; dropped++) {
    record(1)
    await until(async () => counts.dropped === dropped, long)
  }
  expect(lines).toEqual([outage])
  receiver.behave('takes')
  record(1)
  await until(async () => counts.sent === 1, long)
  expect(lines).toEqual([outage, 'traces are sent again'])
  await exporter.close()
  expect(counts).toEqual({ sent: 1, rejected: 0, dropped: 3 })
})

test('a receiver that is gone is an outage too', async () => {
  const gone = await startOtlpReceiver()
  await gone.close()
  const { exporter, counts, lines, record } = exporterTo(gone.url)
  record(1)
  await until(async () => counts.dropped === 1, long)
  expect(lines).toHaveLength(1)
  await exporter.close()
})

const json = (response: ServerResponse, body: unknown): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

test('counts the spans that a partial success rejects, and logs them rarely with the reason', async () => {
  const partialSuccess = { rejectedSpans: '2', errorMessage: `too old\u001b[2J\n${'x'.repeat(10_000)}` }
  const receiver = await startOtlpReceiver((response) => json(response, { partialSuccess }))
  onTestFinished(() => receiver.close())
  const { exporter, counts, lines, logged, record } = exporterTo(receiver.url, { batch: 5 })
  record(15)
  await until(async () => counts.sent === 9, long)
  expect(counts).toEqual({ sent: 9, rejected: 6, dropped: 0 })
  expect(lines).toEqual(['spans were rejected by the endpoint'])
  expect(logged[0]).toMatchObject({ rejected: 2, reason: expect.stringMatching(/^too old \[2J x{200,300}$/) })
  await exporter.close()
})

test('logs rejections again after a while, with the number since the last line', async () => {
  const receiver = await startOtlpReceiver((response) => json(response, { partialSuccess: { rejectedSpans: 1 } }))
  onTestFinished(() => receiver.close())
  const { exporter, lines, logged, record } = exporterTo(receiver.url, { batch: 1, rejectionsLoggedMillis: 0 })
  record(3)
  await until(async () => lines.length === 3, long)
  expect(logged.map((fields) => fields['rejected'])).toEqual([1, 1, 1])
  await exporter.close()
})

test.each([
  ['a warning without rejected spans', { partialSuccess: { errorMessage: 'slow down' } }, { sent: 4, rejected: 0 }],
  ['more rejected spans than were sent', { partialSuccess: { rejectedSpans: '99999999' } }, { sent: 0, rejected: 4 }],
  ['a negative number', { partialSuccess: { rejectedSpans: -3 } }, { sent: 4, rejected: 0 }],
  ['a number that is none', { partialSuccess: { rejectedSpans: { toString: 1 } } }, { sent: 4, rejected: 0 }],
  ['no object', [[[]]], { sent: 4, rejected: 0 }],
])('an answer with %s counts each span once', async (_, body, expected) => {
  const receiver = await startOtlpReceiver((response) => json(response, body))
  onTestFinished(() => receiver.close())
  const { exporter, counts, record } = exporterTo(receiver.url)
  record(4)
  await until(async () => counts.sent + counts.rejected === 4, long)
  expect(counts).toEqual({ ...expected, dropped: 0 })
  await exporter.close()
})

/** Writes as much as the other side takes, until it closes the connection. */
function pour(response: ServerResponse, count: (bytes: number) => void): void {
  const chunk = Buffer.alloc(64 * 1024, ' ')
  const write = (): void => {
    while (!response.destroyed) {
      count(chunk.length)
      if (!response.write(chunk)) return
    }
  }
  response.on('drain', write)
  write()
}

let poured = 0
const hostile: Record<string, (response: ServerResponse) => void> = {
  'an endless body': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    pour(response, (bytes) => {
      poured += bytes
    })
  },
  'an endless body with an error': (response) => {
    response.writeHead(400)
    pour(response, (bytes) => {
      poured += bytes
    })
  },
  'a body that never ends': (response) => void response.writeHead(200).write('{'),
  'a refusal': (response) => void response.writeHead(400).end('{"message": "no"}'),
  'a wait of years': (response) => void response.writeHead(429, { 'retry-after': '999999999' }).end(),
  'a redirect': (response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
  'a connection that is closed': (response) => void response.socket?.destroy(),
  'a body that is cut off': (response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{"partialSuccess": {')
    response.socket?.end()
  },
  'long headers': (response) => void response.writeHead(200, { 'x-long': 'x'.repeat(1_000_000) }).end('{}'),
  'something other than HTTP': (response) => void response.socket?.end(Buffer.alloc(100_000, 'x')),
}

test.each(Object.entries(hostile))(
  '%s is a failure: spans are dropped, little is read, and closing ends',
  async (_, behavior) => {
    poured = 0
    const receiver = await startOtlpReceiver(behavior)
    onTestFinished(() => receiver.close())
    const limits = { queued: 20, batch: 10, longestPauseMillis: 20 }
    const { exporter, counts, lines, record } = exporterTo(receiver.url, limits, 1000)
    record(10)
    await until(async () => counts.dropped === 10, long)
    expect(lines).toEqual(['traces cannot be sent; spans are dropped until the endpoint answers'])
    // What the buffers of both sockets take.
    expect(poured).toBeLessThan(32 * 1024 * 1024)
    // A later batch is sent, whatever the endpoint asked for.
    record(10)
    await until(async () => receiver.requests.length >= 2, long)
    record(100)
    await exporter.close()
    expect(counts).toEqual({ sent: 0, rejected: 0, dropped: 120 })
    expect(lines).toHaveLength(1)
  },
)

test('waits as long as the endpoint asks, up to a limit', async () => {
  const receiver = await startOtlpReceiver((response) => void response.writeHead(429, { 'retry-after': '120' }).end())
  onTestFinished(() => receiver.close())
  const { exporter, counts, record } = exporterTo(receiver.url)
  record(1)
  await until(async () => counts.dropped === 1, long)
  receiver.behave('takes')
  record(1)
  // Many times the pause without Retry-After.
  await delay(500)
  expect(receiver.requests).toHaveLength(1)
  await exporter.close()
})
