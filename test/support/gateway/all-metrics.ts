import { silentLogger } from '#kernel/logger.ts'
import { createMetrics } from '#server/metrics/metrics.ts'
import { createReadyMetric } from '#server/metrics/process-metrics.ts'
import { createWorkerMetrics } from '#server/workers/worker-metrics.ts'

/** The labels of every metric of a gateway, by the metric's name, those of Node.js included. */
export function allMetrics(): ReadonlyMap<string, { readonly type: string; readonly labels: readonly string[] }> {
  const metrics = createMetrics()
  const unread = async (): Promise<never> => {
    throw new Error('nothing is scraped here')
  }
  const figures = { figures: unread }
  const figureStores = { runs: figures, approvals: figures, mails: figures }
  const counted = { grants: { due: unread }, clientTokens: { expiring: unread } }
  metrics.workflows.watch({ ...figureStores, ...counted }, silentLogger)
  metrics.reconciliations.watch({ store: { drift: unread }, isConfigured: () => true, log: silentLogger })
  metrics.audit.watch({ size: unread }, silentLogger)
  metrics.database.watchPool(() => undefined)
  metrics.watchDisk('.', silentLogger)
  createReadyMetric(metrics.registry, unread)
  createWorkerMetrics(metrics.registry)
  // prom-client does not declare the names of labels.
  const all = metrics.registry.getMetricsAsArray() as unknown as readonly {
    readonly name: string
    readonly type: string
    readonly labelNames: readonly string[]
  }[]
  return new Map(all.map(({ name, type, labelNames }) => [name, { type, labels: labelNames }]))
}
