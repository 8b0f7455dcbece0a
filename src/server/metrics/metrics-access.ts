import { Registry } from 'prom-client'
import type { MetricsAccess } from '#sdk/filter/metrics-access.ts'
import { acceptsOpenMetrics, openMetricsType, writeOpenMetrics } from '#server/metrics/open-metrics.ts'

/** The metrics of this time in the format that the scraper asks for. */
export const metricsAccess = (read: () => Promise<Registry> | Registry): MetricsAccess => ({
  async write({ accept, names = [] }) {
    const all = await read()
    const registry = names.length === 0 ? all : only(names, all)
    return acceptsOpenMetrics(accept)
      ? { contentType: openMetricsType, body: await writeOpenMetrics(registry) }
      : { contentType: registry.contentType, body: await registry.metrics() }
  },
})

/** By the name of the metric, or of one of the values of a histogram. */
function only(names: readonly string[], all: Registry): Registry {
  const registry = new Registry()
  const wanted = new Set(names.flatMap((name) => [name, name.replace(/_(?:bucket|sum|count)$/, '')]))
  // A look-up by name would also find what every JavaScript object has, such as `constructor`.
  for (const { name } of all.getMetricsAsArray()) {
    const metric = wanted.has(name) ? all.getSingleMetric(name) : undefined
    if (metric !== undefined) registry.registerMetric(metric)
  }
  return registry
}
