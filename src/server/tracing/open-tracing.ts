import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { useTracer } from '#kernel/tracing.ts'
import { version } from '#kernel/version.ts'
import { OtlpExporter, type SpanMeter } from '#server/tracing/otlp-exporter.ts'
import { SpanTracer } from '#server/tracing/span-tracer.ts'
import type { TracingOptions } from '#server/tracing/tracing-options.ts'

interface TracingParts {
  /** Identifies this process among the replicas. */
  readonly replica: string
  readonly meter: SpanMeter
  readonly log: Logger
}

/** Turns tracing on for this process, until it is closed. */
export async function openTracing(
  options: TracingOptions,
  { replica, meter, log }: TracingParts,
): Promise<Required<Closable>> {
  const release = await version()
  const resource = { 'service.version': release, 'service.instance.id': replica, ...options.resource }
  const exporter = new OtlpExporter({ ...options, resource, version: release, meter, log })
  useTracer(new SpanTracer(options.sampling, (span) => exporter.add(span)))
  log.info('traces are sent', { endpoint: exporter.endpoint })
  return {
    close: async () => {
      useTracer(undefined)
      await exporter.close()
    },
  }
}
