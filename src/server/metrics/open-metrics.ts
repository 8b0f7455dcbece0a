import { type Metric, type OpenMetricsContentType, Registry } from 'prom-client'

export const openMetricsType = Registry.OPENMETRICS_CONTENT_TYPE

/** Whether a scraper asks for OpenMetrics, the format with exemplars. */
export const acceptsOpenMetrics = (accept: string | undefined): boolean =>
  /(?:^|,)\s*application\/openmetrics-text\b(?![^,]*;\s*q=0(?:\.0*)?\s*(?:;|,|$))/i.test(accept ?? '')

/**
 * The metrics in the OpenMetrics format. prom-client renames counters while it writes them, so it gets objects that inherit
 * from the metrics, and the metrics keep their names.
 */
export function writeOpenMetrics(metrics: Pick<Registry, 'getMetricsAsArray'>): Promise<string> {
  const registry = new Registry<OpenMetricsContentType>()
  registry.setContentType(openMetricsType)
  for (const metric of metrics.getMetricsAsArray()) registry.registerMetric(Object.create(metric) as Metric)
  return registry.metrics()
}
