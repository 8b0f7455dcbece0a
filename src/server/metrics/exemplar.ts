import { Histogram, type HistogramConfiguration, type Registry } from 'prom-client'
import { tracer } from '#kernel/tracing.ts'

/**
 * A histogram whose measurements may have exemplars. prom-client refuses to create one on a registry of the Prometheus
 * format, although it then writes none, so it is registered afterwards.
 */
export function histogramWithExemplars<T extends string>(
  registry: Registry,
  configuration: HistogramConfiguration<T>,
): Histogram<T> {
  const histogram = new Histogram({ ...configuration, enableExemplars: true, registers: [] })
  registry.registerMetric(histogram)
  return histogram
}

/** The trace of the caller as the exemplar of a measurement; undefined without a trace that is recorded. */
export function currentExemplar(): { readonly exemplarLabels: Record<string, never> } | undefined {
  const context = tracer?.current()?.context
  if (context === undefined || !context.sampled) return undefined
  // Labels of exemplars are not those of the metric, which the types of prom-client do not know.
  return { exemplarLabels: { trace_id: context.traceId } as unknown as Record<string, never> }
}
