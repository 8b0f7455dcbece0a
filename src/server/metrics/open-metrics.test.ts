import { afterEach, expect, test } from 'vitest'
import { useTracer } from '#kernel/tracing.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { acceptsOpenMetrics, writeOpenMetrics } from '#server/metrics/open-metrics.ts'
import { SpanTracer } from '#server/tracing/span-tracer.ts'

afterEach(() => useTracer(undefined))

test('a scraper that asks for OpenMetrics gets exemplars, and another gets the same metrics without them', async () => {
  const tracer = new SpanTracer({ parentBased: true, ratio: 1 }, () => {})
  useTracer(tracer)
  const metrics = createMetrics()
  const traceId = tracer.span({ name: 'GET', kind: 'server', parent: 'none' }, (span) => {
    metrics.answered('people', 'GET', 200, 12)
    metrics.workflows.observer.executed({ workflow: 'w', taskType: 'provision', outcome: 'next', millis: 3 })
    return span.context.traceId
  })
  const open = await writeOpenMetrics(metrics.registry)
  const exemplar = `# {trace_id="${traceId}"}`
  expect(open).toContain('# TYPE gatehouse_http_requests counter\n')
  expect(open).toContain(
    '\ngatehouse_http_requests_total{application="people",method="GET",status="200",outcome="ok"} 1\n',
  )
  expect(open).toContain(`gatehouse_http_request_seconds_bucket{le="0.05",application="people"} 1 ${exemplar} 0.012 `)
  expect(open).toMatch(new RegExp(`gatehouse_workflow_step_seconds_bucket.*trace_id="${traceId}"`))
  expect(open.endsWith('\n# EOF\n')).toBe(true)
  // Writing one format leaves the other as it was.
  const plain = await metrics.registry.metrics()
  expect(plain).toContain('# TYPE gatehouse_http_requests_total counter\n')
  expect(plain).toContain(
    '\ngatehouse_http_requests_total{application="people",method="GET",status="200",outcome="ok"} 1\n',
  )
  expect(plain).not.toContain('trace_id')
})

test('a trace that is not recorded is no exemplar', async () => {
  const tracer = new SpanTracer({ parentBased: true, ratio: 0 }, () => {})
  useTracer(tracer)
  const metrics = createMetrics()
  tracer.span({ name: 'GET', kind: 'server', parent: 'none' }, () => metrics.answered('people', 'GET', 200, 12))
  const open = await writeOpenMetrics(metrics.registry)
  expect(open).toContain('gatehouse_http_request_seconds_count{application="people"} 1')
  expect(open).not.toContain('trace_id')
})

test('the format follows the Accept header', () => {
  expect(acceptsOpenMetrics('application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2')).toBe(true)
  expect(acceptsOpenMetrics('text/plain, application/openmetrics-text')).toBe(true)
  for (const accept of [undefined, '', '*/*', 'text/plain', 'application/openmetrics-text;q=0, text/plain']) {
    expect(acceptsOpenMetrics(accept)).toBe(false)
  }
})
