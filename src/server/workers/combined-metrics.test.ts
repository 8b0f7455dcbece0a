import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { writeOpenMetrics } from '#server/metrics/open-metrics.ts'
import {
  combineMetrics,
  type MetricSnapshot,
  metricsRegistry,
  readSnapshots,
  remaining,
} from '#server/workers/combined-metrics.ts'

/** The metrics of a worker after some requests. */
async function worker(requests: number, current: number, queued: number): Promise<MetricSnapshot[]> {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'requests_total', help: 'Requests.', labelNames: ['status'], registers }).inc(
    { status: '200' },
    requests,
  )
  new Histogram({ name: 'seconds', help: 'Time.', buckets: [1], registers }).observe(requests)
  new Gauge({ name: 'gatehouse_configuration_current', help: 'Current.', registers }).set(current)
  new Gauge({ name: 'gatehouse_mails_queued', help: 'Queued.', registers }).set(queued)
  new Gauge({ name: 'gatehouse_connections_open', help: 'Open.', registers }).set(requests)
  new Gauge({ name: 'process_resident_memory_bytes', help: 'Memory.', registers }).set(requests * 100)
  new Gauge({ name: 'new_gauge', help: 'Without a rule.', registers }).set(requests)
  return structuredClone(await readSnapshots(registry))
}

const both = async () => [
  { worker: '1', metrics: await worker(1, 1, Number.NaN) },
  { worker: '2', metrics: await worker(3, 0, 7) },
]

test('each metric of two workers follows its rule', async () => {
  const text = await metricsRegistry(combineMetrics(await both())).metrics()
  expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
    'requests_total{status="200"} 4',
    'seconds_bucket{le="1"} 1',
    'seconds_bucket{le="+Inf"} 2',
    'seconds_sum 4',
    'seconds_count 2',
    'gatehouse_configuration_current 0',
    'gatehouse_mails_queued 7',
    'gatehouse_connections_open 4',
    'process_resident_memory_bytes{worker="1"} 100',
    'process_resident_memory_bytes{worker="2"} 300',
    'new_gauge{worker="1"} 1',
    'new_gauge{worker="2"} 3',
  ])
})

test('OpenMetrics has the same values', async () => {
  const text = await writeOpenMetrics(metricsRegistry(combineMetrics(await both())))
  expect(text).toContain('# TYPE requests counter\nrequests_total{status="200"} 4\n')
  expect(text).toContain('seconds_count 2\n')
  expect(text).toMatch(/# EOF\n$/)
})

test('of a worker that has ended, only what it counted remains', async () => {
  const names = remaining(await worker(1, 1, 1)).map(({ name }) => name)
  expect(names).toEqual(['requests_total', 'seconds'])
})
