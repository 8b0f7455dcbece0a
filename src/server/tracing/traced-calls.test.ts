import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { inMemory, SqliteClient } from '#database/sqlite.ts'
import { useTracer, writeTraceparent } from '#kernel/tracing.ts'
import { exchange } from '#protocols/http/http-client.ts'
import { createAccessLog, createLogger } from '#server/log/log.ts'
import { type EndedSpan, SpanTracer } from '#server/tracing/span-tracer.ts'

let ended: EndedSpan[] = []
const tracer = new SpanTracer({ parentBased: true, ratio: 1 }, (span) => ended.push(span))
beforeEach(() => {
  ended = []
  useTracer(tracer)
})
afterEach(() => useTracer(undefined))

const request = { kind: 'server', parent: 'none' } as const

test('calls that share a commit keep their own statements, and parameters are left out', async () => {
  const client = new SqliteClient(inMemory)
  onTestFinished(() => client.close())
  const query = (sql: string, ...params: string[]) => ({ sql, params, name: undefined })
  await client.transaction(async (tx) => void (await tx.run(query('create table names (name text)'))))
  const names = ['ada', 'grace', 'linus']
  await Promise.all(
    names.map((name) =>
      tracer.span({ ...request, name: `request of ${name.length}` }, async () => {
        await client.transaction(async (tx) => void (await tx.run(query('insert into names values (?)', name))))
        await client.query(query('select name from names where name = ?', name))
      }),
    ),
  )
  const traces = Map.groupBy(ended, ({ context }) => context.traceId)
  expect(traces.size).toBe(3)
  for (const spans of traces.values()) {
    const [insert, transaction, select, root] = spans
    expect(spans.map(({ name }) => name.replace(/ \d$/, ''))).toEqual([
      'insert names',
      'transaction',
      'select names',
      'request of',
    ])
    expect(insert?.parentId).toBe(transaction?.context.spanId)
    expect([transaction?.parentId, select?.parentId]).toEqual([root?.context.spanId, root?.context.spanId])
    expect(insert?.attributes.get('db.query.text')).toBe('insert into names values (?)')
  }
  const written = JSON.stringify(ended.map(({ name, attributes }) => [name, ...attributes]))
  for (const name of names) expect(written).not.toContain(name)
})

test('an outgoing call passes the trace on, and says nothing of its path', async () => {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer(({ headers }, response) => {
    seen.push(headers)
    response.writeHead(seen.length === 1 ? 200 : 503).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const url = new URL(`http://127.0.0.1:${port}/Users/ada?filter=grace`)
  const call = () =>
    exchange({ method: 'GET', url, headers: {} }, {}, { signal: AbortSignal.timeout(20_000), bytes: 10 })
  const parent = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true, state: 'vendor=1' }
  await tracer.span({ ...request, name: 'request', parent }, call)
  await tracer.span({ ...request, name: 'second' }, call)
  await call()
  const [sent, , failed] = ended
  expect(seen[0]).toMatchObject({ traceparent: sent && writeTraceparent(sent.context), tracestate: 'vendor=1' })
  expect(Object.fromEntries(sent?.attributes ?? [])).toEqual({
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'server.address': '127.0.0.1',
    'server.port': port,
    'http.response.status_code': 200,
  })
  expect(failed).toMatchObject({ name: 'GET', failed: true })
  expect(seen[1]).not.toHaveProperty('tracestate')
  expect(seen[2]).not.toHaveProperty('traceparent')
  expect(ended).toHaveLength(4)
})

test('log lines name their trace and their run', () => {
  const lines: string[] = []
  const write = (line: string): void => void lines.push(line)
  const log = createLogger('info', { write })
  const access = createAccessLog('info', write)
  const entry = { requestId: 'r', method: 'GET', host: 'h', path: '/', status: 200, ms: 1, application: 'a' }
  const { context } = tracer.span({ ...request, name: 'run', run: 'run-1' }, (span) => {
    tracer.span({ name: 'step', kind: 'internal', parent: 'current' }, () => log.info('inside'))
    log.with({ module: 'm' }).info('another run', { workflowId: 'run-2' })
    return span
  })
  const { context: ofRequest } = tracer.span({ ...request, name: 'request' }, (span) => {
    access({ ...entry, subject: undefined, remote: '' })
    return span
  })
  log.info('outside')
  const [inside, other, accessed, outside] = lines.map((line) => JSON.parse(line))
  expect(inside).toMatchObject({ msg: 'inside', trace_id: context.traceId, workflowId: 'run-1' })
  expect(inside.span_id).toBe(ended[0]?.context.spanId)
  expect(other).toMatchObject({ module: 'm', trace_id: context.traceId, workflowId: 'run-2' })
  expect(accessed).toMatchObject({ msg: 'request', trace_id: ofRequest.traceId, span_id: ofRequest.spanId })
  expect(accessed).not.toHaveProperty('workflowId')
  expect(outside).not.toHaveProperty('trace_id')
})
