import { Counter, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { MetricsAccess } from '#sdk/filter/metrics-access.ts'
import { metricsAccess } from '#server/metrics/metrics-access.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import metrics from './metrics.ts'

function prepare(params: ParamValues = {}) {
  const issues = noIssues()
  const prepared = metrics.prepare(fakeParams(params), issues, fakeParseContext())
  return { prepared, problems: issueTexts(issues.list) }
}

function ofProcess(): MetricsAccess {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'logins_total', help: 'Logins', registers }).inc(3)
  new Histogram({ name: 'request_seconds', help: 'Requests', buckets: [1], registers }).observe(0.5)
  return metricsAccess(() => registry)
}

async function scrape(query = '', { method = 'GET', accept = '' } = {}) {
  const filter = await prepare().prepared.create(fakeModuleHost({ metrics: ofProcess() }))
  const request = fakeRequest({ method, url: `https://gate.test/metrics${query}`, headers: { accept } })
  const caller = subject('username=prometheus,ou=oauth2,o=Tremolo')
  const exchange = { request, application: 'metrics', mount: '/metrics', pathInfo: '', subject: caller }
  return filter.handle(exchange, async () => ({ status: 404, headers: {} }))
}

test('answers with the metrics of the process, in the format of the scraper', async () => {
  const { status, headers, body } = await scrape()
  expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('text/plain')])
  expect(body).toContain('logins_total 3')
  expect(body).toContain('request_seconds_bucket{le="1"} 1')
  const open = await scrape('', { accept: 'application/openmetrics-text' })
  expect(open.headers['content-type']).toContain('application/openmetrics-text')
  expect(open.body).toContain('# EOF')
})

test('answers with the metrics that the query names', async () => {
  expect((await scrape('?name[]=logins_total')).body).not.toContain('request_seconds')
  expect((await scrape('?name%5B%5D=request_seconds_bucket')).body).toContain('request_seconds_sum 0.5')
  for (const name of ['none', 'constructor', '__proto__', 'toString']) {
    expect(String((await scrape(`?name[]=${name}`)).body).trim(), name).toBe('')
  }
})

test('only reads', async () => {
  expect((await scrape('', { method: 'HEAD' })).body).toBeUndefined()
  await expect(scrape('', { method: 'POST' })).rejects.toMatchObject({ status: 405 })
})

test('a Java class is not loaded, and check says so', () => {
  expect(prepare().problems).toEqual([])
  expect(prepare({ localMetricsClassName: 'com.tremolosecurity.MyMetrics' }).problems).toEqual([
    expect.stringMatching(/^warning params\.localMetricsClassName: .* cannot be loaded$/),
  ])
})
