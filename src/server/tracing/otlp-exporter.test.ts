import { expect, onTestFinished, test } from 'vitest'
import type { Logger } from '#kernel/logger.ts'
import { silentLogger } from '#kernel/logger.ts'
import { OtlpExporter } from '#server/tracing/otlp-exporter.ts'
import { type EndedSpan, SpanTracer } from '#server/tracing/span-tracer.ts'
import { until } from '#testing/gateway-process.ts'
import { startOtlpReceiver } from '#testing/otlp-receiver.ts'

const long = 20_000

function exporterTo(url: string, limits: ConstructorParameters<typeof OtlpExporter>[1] = {}) {
  const counts = { sent: 0, dropped: 0 }
  const lines: string[] = []
  const note = (message: string): void => void lines.push(message)
  const log: Logger = { ...silentLogger, warn: note, info: note }
  const parts = {
    url: new URL(`${url}/v1/traces`),
    headers: { authorization: 'Bearer secret' },
    timeoutMillis: long,
    resource: { 'service.name': 'test' },
    version: '1',
    meter: {
      counted: (outcome: 'sent' | 'dropped', spans: number) => {
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
  return { exporter, counts, lines, record }
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
  expect(counts).toEqual({ sent: 26, dropped: 0 })
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
  expect(counts).toEqual({ sent: 0, dropped: 30 })
  await exporter.close()
  expect(counts).toEqual({ sent: 0, dropped: 60 })
  record(1)
  expect(counts).toEqual({ sent: 0, dropped: 61 })
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
  expect(counts).toEqual({ sent: 1, dropped: 3 })
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
