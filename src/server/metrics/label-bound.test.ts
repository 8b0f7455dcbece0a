import { expect, test } from 'vitest'
import { createMetrics } from '#server/metrics/metrics.ts'

const linesOf = (text: string, metric: string): string[] => text.split('\n').filter((line) => line.startsWith(metric))

test('callers cannot add labels: methods that they make up count together', async () => {
  const metrics = createMetrics()
  for (const method of ['GET', 'PROPFIND', 'MKCOL', 'M-SEARCH', 'BREW']) metrics.answered('people', method, 405, 1)
  const lines = linesOf(await metrics.registry.metrics(), 'gatehouse_http_requests_total{')
  expect(lines).toEqual([
    'gatehouse_http_requests_total{application="people",method="GET",status="405",outcome="refused"} 1',
    'gatehouse_http_requests_total{application="people",method="other",status="405",outcome="refused"} 4',
  ])
})

test('a large configuration has a bounded number of time series', async () => {
  const metrics = createMetrics()
  for (let i = 0; i < 2000; i++) {
    metrics.answered(`application${i}`, 'GET', 200, 1)
    metrics.exchanged(`endpoint${i}`, 'issued', '')
    metrics.targets.failed(`target${i}`, 'TARGET_UNREACHABLE')
    metrics.logins.counted(`chain${i}`, 'begun')
    metrics.workflows.jobs.ended(`job${i}`, 'done', 1)
    metrics.audit.lag(`sink${i}`, 1, 1)
  }
  const text = await metrics.registry.metrics()
  const bounded = {
    'gatehouse_http_requests_total{': 1500,
    'gatehouse_http_request_seconds_count{': 1500,
    'gatehouse_sts_tokens_total{': 1500,
    'gatehouse_target_failures_total{': 1500,
    'gatehouse_logins_total{': 1500,
    'gatehouse_job_runs_total{': 1500,
  }
  for (const [metric, others] of Object.entries(bounded)) {
    const lines = linesOf(text, metric)
    expect(lines).toHaveLength(501)
    expect(lines.filter((line) => line.includes('="other"'))).toEqual([
      expect.stringMatching(new RegExp(` ${others}$`)),
    ])
  }
  expect(linesOf(text, 'gatehouse_audit_sink_lag_records{')).toHaveLength(501)
})
